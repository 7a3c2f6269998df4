//! The closed lists of words that the rules know, and look-ups in them. Adding a word here changes what statements
//! mean to the rules: raise `RULES_VERSION` with it.

use crate::read::list::WordList;
use std::collections::BTreeMap;
use std::sync::LazyLock;

pub(crate) use super::technologies::technology;

/// Whether `word` is in `list`.
pub(crate) fn is_in(list: WordList, word: &str) -> bool {
    list.has(word)
}

pub(crate) const ARTICLES: WordList = WordList::new("a an the");
pub(crate) const DETERMINERS: WordList = WordList::new("a an the our my your his her its their this that these those each every all some any no both most many few another");
/// Say nothing about what holds.
pub(crate) const INTENSIFIERS: WordList = WordList::new("very really quite actually basically definitely certainly indeed totally extremely highly literally honestly");
pub(crate) const PREPOSITIONS: WordList = WordList::new("for as in on at by with within without between among during from to into onto of \
     over under through via across after before until since against about per than around behind beside besides near \
     off despite except only when where while because instead rather using");
/// Start a phrase that narrows a statement without changing what it says (general forms leave these out).
pub(crate) const QUALIFIERS: WordList = WordList::new("for as in on at with within between among during via through across under only except when where while per \
     without inside outside near using");
pub(crate) const PRONOUNS: WordList = WordList::new("i we you he she it they this that these those there who what which someone \
     somebody everyone everybody nobody anyone me us him her them something anything everything nothing mine ours");
/// A subject that a reader of the single statement cannot resolve.
pub(crate) const UNRESOLVED: WordList = WordList::new("you he she it they this that these those there him her them someone somebody \
     something anything everything here what which who one ones");
pub(crate) const MODALS: WordList = WordList::new("will would shall should can could may might must");
pub(crate) const BE: WordList = WordList::new("be am is are was were been being");
pub(crate) const HAVE: WordList = WordList::new("have has had having");
pub(crate) const DO: WordList = WordList::new("do does did");
pub(crate) const NEGATIONS: WordList = WordList::new("not never no none neither nor nobody nothing cannot without");
pub(crate) const QUANTIFIERS: WordList = WordList::new("all some every each any most many few several both half always sometimes often \
     usually rarely seldom only except none no");
pub(crate) const LIMITS: WordList = WordList::new("only except if unless until or either least most minimum maximum min max than exactly up");
pub(crate) const MODAL_STRENGTH: WordList = WordList::new("must should may can shall might could would need needs required optional");
pub(crate) const ADVERBS: WordList = WordList::new("also always never still currently now usually often already just probably maybe \
     only recently finally officially sometimes rarely typically normally generally again too both all later soon \
     therefore thus then eventually tentatively mostly mainly primarily ever even longer instead together");
pub(crate) const HEDGES: WordList = WordList::new("maybe perhaps possibly probably presumably supposedly apparently likely unlikely \
     tentatively potentially");
/// First words of [`HEDGE_PHRASES`].
pub(crate) const HEDGE_FIRST: WordList = WordList::new("consider considering could have how i in it leaning might not seem seems thinking undecided unsure we what wondering would");
/// Several words that make a statement a guess.
pub(crate) const HEDGE_PHRASES: &[&str] = &[
    "i think", "i guess", "i suppose", "i believe", "i suspect", "i feel like", "not sure", "unsure", "we might",
    "thinking about", "thinking of", "leaning toward", "leaning towards", "leaning to", "considering", "consider",
    "it seems", "seems like", "seem to", "seems to", "it look like", "it looks like", "in theory",
    "what about", "how about", "wondering", "might", "could", "would be nice", "would be better", "would rather not",
    "we would", "not certain", "i doubt", "not decided", "have not decided", "undecided",
];
pub(crate) const MONTHS: &[&str] = &[
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
];
pub(crate) const WEEKDAYS: &[&str] = &["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// Opposites (gate G3): one replaced by the other turns a statement round.
pub(crate) const OPPOSITES: &[(&str, &str)] = &[
    ("on", "off"), ("enabled", "disabled"), ("enable", "disable"), ("allow", "deny"), ("allowed", "denied"),
    ("allow", "forbid"), ("allowed", "forbidden"), ("allowed", "prohibited"), ("include", "exclude"),
    ("included", "excluded"), ("start", "stop"), ("started", "stopped"), ("before", "after"),
    ("increase", "decrease"), ("increased", "decreased"), ("raise", "lower"), ("raised", "lowered"),
    ("always", "never"), ("public", "private"), ("open", "closed"), ("locked", "unlocked"), ("active", "inactive"),
    ("required", "optional"), ("mandatory", "optional"), ("accept", "reject"), ("accepted", "rejected"),
    ("internal", "external"), ("online", "offline"), ("add", "remove"), ("added", "removed"), ("show", "hide"),
    ("encrypted", "unencrypted"), ("signed", "unsigned"), ("valid", "invalid"), ("safe", "unsafe"),
    ("stable", "unstable"), ("supported", "unsupported"), ("synchronous", "asynchronous"), ("up", "down"),
    ("true", "false"), ("success", "failure"), ("pass", "fail"), ("passed", "failed"), ("approve", "reject"),
    ("approved", "rejected"), ("opt-in", "opt-out"), ("visible", "hidden"), ("connected", "disconnected"),
    ("present", "absent"), ("full", "empty"), ("first", "last"), ("maximum", "minimum"), ("upper", "lower"),
    ("more", "less"), ("with", "without"), ("ascending", "descending"), ("read-only", "writable"),
    ("available", "unavailable"), ("possible", "impossible"), ("complete", "incomplete"), ("above", "below"),
    ("push", "pull"), ("cheap", "expensive"), ("fast", "slow"), ("faster", "slower"), ("good", "bad"),
    ("better", "worse"), ("high", "low"), ("higher", "lower"), ("hot", "cold"), ("early", "late"),
];

/// The opposites that blocks a merge but make no conflict: both may hold.
const WEAK_OPPOSITES: WordList = WordList::new("more less first last with without maximum minimum upper lower up down full empty push \
     pull good bad better worse high higher low cheap expensive fast slow faster slower hot cold early late add \
     remove added removed above below start started stop stopped show hide pass fail passed failed success failure");

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

/// How a verb form stands to its base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Base,
    /// Third person singular.
    S,
    Past,
    Participle,
    Ing,
}

const REGULAR: WordList = WordList::new("accept access act adopt add advertise affect agree aim allow analyze announce appear apply \
     approve archive arrive ask assign attend audit authenticate authorize avoid back ban base batch become behave \
     belong benefit block book bother break browse bump cache call cancel cause change charge check clean clear \
     close collect communicate compile complete compress configure confirm connect consider consist consume contain \
     continue convert cost cover crash create decide decline decommission decrease default delay delete deliver \
     depend deploy deprecate describe design detect develop disable discard discuss dislike display document drain \
     edit emit employ enable encrypt end enforce enjoy ensure enter equal escalate estimate exceed exclude execute \
     exist expect expire explain expose export extend fail favor fetch fill filter finish fix flush focus follow \
     force format gather generate grow guarantee handle happen head help host identify ignore implement import \
     improve include increase index inform inherit initialize install integrate introduce invalidate invite involve \
     issue join kill lack last launch learn license like limit link list listen live load locate lock abandon ditch scrap sunset remind intend employ vacation cook bake log look love lower \
     maintain manage measure mention merge migrate miss mirror monitor mount move mute need notify occupy offer open \
     operate opt order organize oversee own pack page parse pass patch pause pay perform pick plan play poll pool \
     postpone power prefer prepare prevent process produce prohibit promise protect provide provision publish pull \
     push query queue raise rate reach rebuild receive recommend record reduce refactor refer refuse reject relate \
     relax release rely remain remember remove rename render renew rent repeat replace replicate report represent \
     request require reschedule reserve reset resolve respect respond restart restore restrict retain retire retry \
     return reuse review rotate route sanitize save scale schedule score scrape secure seem select separate serve \
     share ship shift sign simplify skip slow solve sort specialize specify sponsor stage standardize start state stay \
     stop store stream submit subscribe suffer suggest supervise supply support surface switch sync target test time \
     touch track trade train transfer translate travel treat trigger trust try tune turn type update upgrade upload \
     use validate value verify version view visit vote wait walk want warn watch weigh work wrap settle drop rule swap \
     commit prep ban refer admit permit map pin tag step chat plug slip snap trim unplug quit equip double forward \
     attach bundle carry cite classify coordinate count cut-over deny die diagnose distribute divide double email \
     evaluate expand extract fund gate hash hate house investigate isolate label layer leak limit mandate mark match \
     mentor migrate model negotiate note object observe opt-in orchestrate outsource own package phase power prioritize \
     promote prove pursue qualify react reboot redirect register reject reply reside retry revert revoke roll run-on \
     scan sponsor stabilize stall stand-up steer struggle study succeed suspend sustain team teach terminate throttle \
     total trace triage unblock unify vary wire witness");
const DOUBLING: WordList = WordList::new("stop drop plan ship log prefer refer commit submit permit admit map pin tag step chat plug slip \
     snap trim unplug ban swap wrap equip skip prep occur transfer");
const IRREGULAR: &[(&str, &str, &str)] = &[
    ("be", "was", "been"), ("begin", "began", "begun"), ("break", "broke", "broken"), ("bring", "brought", "brought"),
    ("build", "built", "built"), ("buy", "bought", "bought"), ("choose", "chose", "chosen"), ("come", "came", "come"),
    ("cost", "cost", "cost"), ("cut", "cut", "cut"), ("deal", "dealt", "dealt"), ("do", "did", "done"),
    ("drive", "drove", "driven"), ("eat", "ate", "eaten"), ("fall", "fell", "fallen"), ("feed", "fed", "fed"),
    ("feel", "felt", "felt"), ("find", "found", "found"), ("fit", "fit", "fit"), ("forbid", "forbade", "forbidden"),
    ("forget", "forgot", "forgotten"), ("freeze", "froze", "frozen"), ("get", "got", "gotten"),
    ("give", "gave", "given"), ("go", "went", "gone"), ("grow", "grew", "grown"), ("have", "had", "had"),
    ("hit", "hit", "hit"), ("hold", "held", "held"), ("keep", "kept", "kept"), ("know", "knew", "known"),
    ("lead", "led", "led"), ("leave", "left", "left"), ("lend", "lent", "lent"), ("let", "let", "let"),
    ("lose", "lost", "lost"), ("make", "made", "made"), ("mean", "meant", "meant"), ("meet", "met", "met"),
    ("overrun", "overran", "overrun"), ("oversee", "oversaw", "overseen"), ("put", "put", "put"),
    ("read", "read", "read"), ("rewrite", "rewrote", "rewritten"), ("ride", "rode", "ridden"), ("run", "ran", "run"),
    ("say", "said", "said"), ("see", "saw", "seen"), ("sell", "sold", "sold"), ("send", "sent", "sent"),
    ("set", "set", "set"), ("shut", "shut", "shut"), ("sit", "sat", "sat"), ("sleep", "slept", "slept"),
    ("speak", "spoke", "spoken"), ("spend", "spent", "spent"), ("split", "split", "split"), ("stand", "stood", "stood"),
    ("stick", "stuck", "stuck"), ("take", "took", "taken"), ("teach", "taught", "taught"), ("tell", "told", "told"),
    ("think", "thought", "thought"), ("wear", "wore", "worn"), ("win", "won", "won"), ("write", "wrote", "written"),
    ("quit", "quit", "quit"), ("drink", "drank", "drunk"), ("become", "became", "become"), ("draw", "drew", "drawn"),
    ("fly", "flew", "flown"), ("pay", "paid", "paid"), ("reset", "reset", "reset"), ("rebuild", "rebuilt", "rebuilt"),
    ("throw", "threw", "thrown"), ("understand", "understood", "understood"), ("steal", "stole", "stolen"),
];

fn inflect(base: &str, suffix: &str) -> String {
    let (stem, last) = base.split_at(base.len().saturating_sub(1));
    let consonant_y = last == "y" && !stem.ends_with(['a', 'e', 'o', 'u']);
    match suffix {
        "s" if consonant_y => format!("{stem}ies"),
        "s" if base.ends_with("ss") || base.ends_with("sh") || base.ends_with("ch") || matches!(last, "x" | "z" | "o") => {
            format!("{base}es")
        }
        "s" => format!("{base}s"),
        "ed" if last == "e" => format!("{base}d"),
        "ed" if consonant_y => format!("{stem}ied"),
        "ing" if last == "e" && !stem.ends_with('e') && base != "be" => format!("{stem}ing"),
        _ if is_in(DOUBLING, base) || matches!(base, "run" | "get" | "set" | "cut" | "put" | "let" | "hit" | "sit") => {
            format!("{base}{last}{suffix}")
        }
        _ => format!("{base}{suffix}"),
    }
}

/// The base and form of a verb in the list.
pub(crate) fn verb(lower: &str) -> Option<(&'static str, Form)> {
    static MAP: LazyLock<BTreeMap<String, (&'static str, Form)>> = LazyLock::new(|| {
        let mut map = BTreeMap::new();
        for (base, past, participle) in IRREGULAR {
            map.insert((*participle).to_owned(), (*base, Form::Participle));
            map.insert((*past).to_owned(), (*base, Form::Past));
            map.insert(inflect(base, "ing"), (*base, Form::Ing));
            map.insert(inflect(base, "s"), (*base, Form::S));
            map.insert((*base).to_owned(), (*base, Form::Base));
        }
        for base in REGULAR.words() {
            for (suffix, form) in [("ed", Form::Past), ("ing", Form::Ing), ("s", Form::S)] {
                map.entry(inflect(base, suffix)).or_insert((base, form));
            }
            map.entry(base.to_owned()).or_insert((base, Form::Base));
        }
        for (form, kind) in [("has", Form::S), ("is", Form::S), ("are", Form::Base), ("am", Form::Base), ("were", Form::Past)] {
            map.insert(form.to_owned(), (if form == "has" { "have" } else { "be" }, kind));
        }
        map.insert("transferred".to_owned(), ("transfer", Form::Past));
        map.insert("cancelled".to_owned(), ("cancel", Form::Past));
        map.insert("labelled".to_owned(), ("label", Form::Past));
        map
    });
    MAP.get(lower).copied()
}

/// Words after which a capital or an `s` says nothing, or that only look like a plural.
const NOT_PLURAL: WordList = WordList::new("news https aws ios dns tls css sms gps rds eks ecs gcs ses sqs sns vps always sometimes \
     perhaps besides series species means does has was is as this thus its his ours yours theirs us yes less across \
     goods customs glasses physics mathematics analytics kubernetes redis postgres jenkins sales plus versus basis \
     analysis status access process progress address business class express process success cors macos windows os js \
     rails vitess atlas kinesis iris pandas towards afterwards nowadays canvas bias alias lens whereas");

/// A noun or third-person verb without its `s`.
pub(crate) fn singular(lower: &str) -> String {
    if lower.len() <= 3 || !lower.is_ascii() || !lower.ends_with('s') || is_in(NOT_PLURAL, lower) {
        return lower.to_owned();
    }
    if lower.ends_with("ss") || lower.ends_with("us") || lower.ends_with("is") {
        return lower.to_owned();
    }
    for (ending, replacement) in
        [("ies", "y"), ("sses", "ss"), ("shes", "sh"), ("ches", "ch"), ("xes", "x"), ("zzes", "zz")]
    {
        if let Some(stem) = lower.strip_suffix(ending)
            && stem.len() > 1
        {
            return format!("{stem}{replacement}");
        }
    }
    lower.strip_suffix('s').unwrap_or(lower).to_owned()
}

/// British and American spellings of one word become one.
pub(crate) fn spelling(lower: &str) -> String {
    const KEEP: WordList = WordList::new("advise exercise promise raise noise precise otherwise enterprise surprise franchise compromise \
         premise expertise rise wise revise supervise concise disguise praise cruise bruise poise advertise likewise \
         comprise demise devise treatise paradise merchandise improvise televise arise");
    const OUR: &[(&str, &str)] = &[
        ("colour", "color"), ("behaviour", "behavior"), ("favour", "favor"), ("flavour", "flavor"),
        ("honour", "honor"), ("labour", "labor"), ("neighbour", "neighbor"), ("rumour", "rumor"), ("humour", "humor"),
        ("harbour", "harbor"), ("endeavour", "endeavor"), ("vapour", "vapor"), ("odour", "odor"),
    ];
    const WHOLE: &[(&str, &str)] = &[
        ("centre", "center"), ("licence", "license"), ("catalogue", "catalog"), ("grey", "gray"),
        ("modelling", "modeling"), ("modelled", "modeled"), ("cancelled", "canceled"), ("cancelling", "canceling"),
        ("defence", "defense"), ("analyse", "analyze"), ("analysed", "analyzed"), ("labelled", "labeled"),
        ("labelling", "labeling"), ("travelling", "traveling"), ("programme", "program"), ("metre", "meter"),
        ("fibre", "fiber"), ("cheque", "check"), ("ageing", "aging"), ("dialogue", "dialog"), ("judgement", "judgment"),
    ];
    if lower.len() > 40 || !lower.is_ascii() {
        return lower.to_owned();
    }
    if let Some((_, to)) = WHOLE.iter().find(|(from, _)| *from == lower) {
        return (*to).to_owned();
    }
    if let Some((from, to)) = OUR.iter().find(|(from, _)| lower.starts_with(from)) {
        return lower.replacen(from, to, 1);
    }
    for (ending, replacement) in [
        ("isation", "ization"), ("isations", "izations"), ("ise", "ize"), ("ised", "ized"), ("ises", "izes"),
        ("ising", "izing"), ("iser", "izer"), ("isers", "izers"),
    ] {
        if let Some(stem) = lower.strip_suffix(ending)
            && stem.len() > 2
            && !KEEP.words().any(|w| w.strip_suffix('e').is_some_and(|w| lower.starts_with(w)))
        {
            return format!("{stem}{replacement}");
        }
    }
    lower.to_owned()
}

/// A word that carries content of its own: for labels, links and questions.
pub(crate) fn is_content(lower: &str) -> bool {
    const MORE: WordList = WordList::new("yes ok okay please thanks thank hello hi hey well sure right good great here there then than so \
         but and or if how why when where let us go thing things stuff way lot bit today tomorrow yesterday remember \
         note say tell know think see make want like one also too into out up down more most very much such get got");
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
