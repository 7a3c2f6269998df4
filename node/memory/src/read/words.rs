//! The closed lists of words that the rules know, and look-ups in them. Adding a word here changes what statements
//! mean to the rules: raise `RULES_VERSION` with it.

use crate::read::list::WordList;
use std::collections::BTreeMap;
use std::sync::LazyLock;

pub(crate) use super::spelling::{singular, spelling};
pub(crate) use super::technologies::technology;
pub(crate) use super::verbs::{Form, verb};

/// Whether `word` is in `list`.
pub(crate) fn is_in(list: WordList, word: &str) -> bool {
    list.has(word)
}

pub(crate) const ARTICLES: WordList = WordList::new("a an the");
pub(crate) const DETERMINERS: WordList = WordList::new(
    "a an the our my your his her its their this that these those each every all some any no both most many few another",
);
/// Say nothing about what holds.
pub(crate) const INTENSIFIERS: WordList = WordList::new(
    "very really quite actually basically definitely certainly indeed totally extremely highly literally honestly",
);
pub(crate) const PREPOSITIONS: WordList = WordList::new(
    "for as in on at by with within without between among during from to into onto of \
     over under through via across after before until since against about per than around behind beside besides near \
     off despite except only when where while because instead rather using",
);
/// Start a phrase that narrows a statement without changing what it says (general forms leave these out).
pub(crate) const QUALIFIERS: WordList = WordList::new(
    "for as in on at with within between among during via through across under only except when where while per \
     without inside outside near using",
);
pub(crate) const PRONOUNS: WordList = WordList::new(
    "i we you he she it they this that these those there who what which someone \
     somebody everyone everybody nobody anyone me us him her them something anything everything nothing mine ours",
);
/// A subject that a reader of the single statement cannot resolve.
pub(crate) const UNRESOLVED: WordList = WordList::new(
    "you he she it they this that these those there him her them someone somebody \
     something anything everything here what which who one ones",
);
pub(crate) const MODALS: WordList = WordList::new("will would shall should can could may might must");
pub(crate) const BE: WordList = WordList::new("be am is are was were been being");
pub(crate) const HAVE: WordList = WordList::new("have has had having");
pub(crate) const DO: WordList = WordList::new("do does did");
pub(crate) const NEGATIONS: WordList = WordList::new("not never no none neither nor nobody nothing cannot without");
pub(crate) const QUANTIFIERS: WordList = WordList::new(
    "all some every each any most many few several both half always sometimes often \
     usually rarely seldom only except none no",
);
pub(crate) const LIMITS: WordList =
    WordList::new("only except if unless until or either least most minimum maximum min max than exactly up");
pub(crate) const MODAL_STRENGTH: WordList =
    WordList::new("must should may can shall might could would need needs required optional");
pub(crate) const ADVERBS: WordList = WordList::new(
    "also always never still currently now usually often already just probably maybe \
     only recently finally officially sometimes rarely typically normally generally again too both all later soon \
     therefore thus then eventually tentatively mostly mainly primarily ever even longer instead together",
);
pub(crate) const HEDGES: WordList = WordList::new(
    "maybe perhaps possibly probably presumably supposedly apparently likely unlikely \
     tentatively potentially",
);
/// First words of [`HEDGE_PHRASES`].
pub(crate) const HEDGE_FIRST: WordList = WordList::new(
    "consider considering could have how i in it leaning might not seem seems thinking undecided unsure we what wondering would",
);
/// Several words that make a statement a guess.
pub(crate) const HEDGE_PHRASES: &[&str] = &[
    "i think",
    "i guess",
    "i suppose",
    "i believe",
    "i suspect",
    "i feel like",
    "not sure",
    "unsure",
    "we might",
    "thinking about",
    "thinking of",
    "leaning toward",
    "leaning towards",
    "leaning to",
    "considering",
    "consider",
    "it seems",
    "seems like",
    "seem to",
    "seems to",
    "it look like",
    "it looks like",
    "in theory",
    "what about",
    "how about",
    "wondering",
    "might",
    "could",
    "would be nice",
    "would be better",
    "would rather not",
    "we would",
    "not certain",
    "i doubt",
    "not decided",
    "have not decided",
    "undecided",
];
pub(crate) const MONTHS: &[&str] = &[
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
pub(crate) const WEEKDAYS: &[&str] = &[
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

/// Opposites (gate G3): one replaced by the other turns a statement round.
pub(crate) const OPPOSITES: &[(&str, &str)] = &[
    ("on", "off"),
    ("enabled", "disabled"),
    ("enable", "disable"),
    ("allow", "deny"),
    ("allowed", "denied"),
    ("allow", "forbid"),
    ("allowed", "forbidden"),
    ("allowed", "prohibited"),
    ("include", "exclude"),
    ("included", "excluded"),
    ("start", "stop"),
    ("started", "stopped"),
    ("before", "after"),
    ("increase", "decrease"),
    ("increased", "decreased"),
    ("raise", "lower"),
    ("raised", "lowered"),
    ("always", "never"),
    ("public", "private"),
    ("open", "closed"),
    ("locked", "unlocked"),
    ("active", "inactive"),
    ("required", "optional"),
    ("mandatory", "optional"),
    ("accept", "reject"),
    ("accepted", "rejected"),
    ("internal", "external"),
    ("online", "offline"),
    ("add", "remove"),
    ("added", "removed"),
    ("show", "hide"),
    ("encrypted", "unencrypted"),
    ("signed", "unsigned"),
    ("valid", "invalid"),
    ("safe", "unsafe"),
    ("stable", "unstable"),
    ("supported", "unsupported"),
    ("synchronous", "asynchronous"),
    ("up", "down"),
    ("true", "false"),
    ("success", "failure"),
    ("pass", "fail"),
    ("passed", "failed"),
    ("approve", "reject"),
    ("approved", "rejected"),
    ("opt-in", "opt-out"),
    ("visible", "hidden"),
    ("connected", "disconnected"),
    ("present", "absent"),
    ("full", "empty"),
    ("first", "last"),
    ("maximum", "minimum"),
    ("upper", "lower"),
    ("more", "less"),
    ("with", "without"),
    ("ascending", "descending"),
    ("read-only", "writable"),
    ("available", "unavailable"),
    ("possible", "impossible"),
    ("complete", "incomplete"),
    ("above", "below"),
    ("push", "pull"),
    ("cheap", "expensive"),
    ("fast", "slow"),
    ("faster", "slower"),
    ("good", "bad"),
    ("better", "worse"),
    ("high", "low"),
    ("higher", "lower"),
    ("hot", "cold"),
    ("early", "late"),
];

/// The opposites that blocks a merge but make no conflict: both may hold.
const WEAK_OPPOSITES: WordList = WordList::new(
    "more less first last with without maximum minimum upper lower up down full empty push \
     pull good bad better worse high higher low cheap expensive fast slow faster slower hot cold early late add \
     remove added removed above below start started stop stopped show hide pass fail passed failed success failure",
);

/// The pair that `word` belongs to, as a name, and whether it makes a conflict.
pub(crate) fn opposite_pair(word: &str) -> Option<(&'static str, bool)> {
    static MAP: LazyLock<BTreeMap<&'static str, &'static str>> = LazyLock::new(|| {
        let mut map = BTreeMap::new();
        // A word may stand in several pairs; they share the name of the first, so that their slots meet.
        for (a, b) in OPPOSITES {
            let name = map.get(a).or_else(|| map.get(b)).copied().unwrap_or(*a);
            map.insert(*a, name);
            map.insert(*b, name);
        }
        map
    });
    MAP.get(word).map(|name| (*name, !is_in(WEAK_OPPOSITES, word)))
}

/// A word that carries content of its own: for labels, links and questions.
pub(crate) fn is_content(lower: &str) -> bool {
    const MORE: WordList = WordList::new(
        "yes ok okay please thanks thank hello hi hey well sure right good great here there then than so \
         but and or if how why when where let us go thing things stuff way lot bit today tomorrow yesterday remember \
         note say tell know think see make want like one also too into out up down more most very much such get got",
    );
    lower.chars().any(char::is_alphanumeric)
        && !is_in(DETERMINERS, lower)
        && !is_in(PREPOSITIONS, lower)
        && !is_in(PRONOUNS, lower)
        && !is_in(MODALS, lower)
        && !is_in(BE, lower)
        && !is_in(HAVE, lower)
        && !is_in(DO, lower)
        && !is_in(NEGATIONS, lower)
        && !is_in(ADVERBS, lower)
        && !is_in(MORE, lower)
}
