//! English word lists: what is left out, what counts as a negation, and forms that a stemmer cannot relate.

/// Too common to look for. Never a negation, never a word that changes what is asked of a memory.
const STOP: &[&str] = &[
    "a", "about", "all", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could", "did",
    "do", "does", "doing", "for", "from", "had", "has", "have", "having", "he", "her", "hers", "him", "his", "how",
    "i", "if", "in", "into", "is", "it", "its", "me", "my", "of", "on", "or", "our", "she", "should", "so", "some",
    "such", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those", "to", "us",
    "was", "we", "were", "what", "when", "where", "which", "who", "whom", "whose", "why", "will", "with", "would",
    "you", "your",
];

/// Words by which a sentence says that something is not, must not be, or was turned down.
const NEGATIONS: &[&str] = &[
    "avoid",
    "avoided",
    "ban",
    "banned",
    "cannot",
    "disallowed",
    "except",
    "forbid",
    "forbidden",
    "forbids",
    "neither",
    "never",
    "no",
    "nobody",
    "none",
    "nor",
    "not",
    "nothing",
    "prohibited",
    "reject",
    "rejected",
    "rejects",
    "without",
];

/// Irregular forms and the word whose stem they share.
const IRREGULAR: &[(&str, &str)] = &[
    ("arose", "arise"),
    ("ate", "eat"),
    ("awoke", "awake"),
    ("became", "become"),
    ("began", "begin"),
    ("begun", "begin"),
    ("bent", "bend"),
    ("best", "good"),
    ("better", "good"),
    ("bit", "bite"),
    ("bitten", "bite"),
    ("bled", "bleed"),
    ("blew", "blow"),
    ("blown", "blow"),
    ("bore", "bear"),
    ("born", "bear"),
    ("bought", "buy"),
    ("bound", "bind"),
    ("bred", "breed"),
    ("broke", "break"),
    ("broken", "break"),
    ("brought", "bring"),
    ("built", "build"),
    ("burnt", "burn"),
    ("came", "come"),
    ("caught", "catch"),
    ("children", "child"),
    ("chose", "choose"),
    ("chosen", "choose"),
    ("clung", "cling"),
    ("crept", "creep"),
    ("dealt", "deal"),
    ("drank", "drink"),
    ("drawn", "draw"),
    ("dreamt", "dream"),
    ("drew", "draw"),
    ("driven", "drive"),
    ("drove", "drive"),
    ("drunk", "drink"),
    ("dug", "dig"),
    ("eaten", "eat"),
    ("fallen", "fall"),
    ("fed", "feed"),
    ("feet", "foot"),
    ("fell", "fall"),
    ("felt", "feel"),
    ("fled", "flee"),
    ("flew", "fly"),
    ("flown", "fly"),
    ("forbade", "forbid"),
    ("forbidden", "forbid"),
    ("forgave", "forgive"),
    ("forgiven", "forgive"),
    ("forgot", "forget"),
    ("forgotten", "forget"),
    ("fought", "fight"),
    ("found", "find"),
    ("froze", "freeze"),
    ("frozen", "freeze"),
    ("gave", "give"),
    ("geese", "goose"),
    ("given", "give"),
    ("gone", "go"),
    ("got", "get"),
    ("gotten", "get"),
    ("grew", "grow"),
    ("grown", "grow"),
    ("heard", "hear"),
    ("held", "hold"),
    ("hid", "hide"),
    ("hidden", "hide"),
    ("hung", "hang"),
    ("kept", "keep"),
    ("knelt", "kneel"),
    ("knew", "know"),
    ("known", "know"),
    ("laid", "lay"),
    ("leapt", "leap"),
    ("learnt", "learn"),
    ("led", "lead"),
    ("left", "leave"),
    ("lent", "lend"),
    ("lit", "light"),
    ("lost", "lose"),
    ("made", "make"),
    ("meant", "mean"),
    ("men", "man"),
    ("met", "meet"),
    ("mice", "mouse"),
    ("mistaken", "mistake"),
    ("mistook", "mistake"),
    ("overcame", "overcome"),
    ("paid", "pay"),
    ("people", "person"),
    ("ran", "run"),
    ("rang", "ring"),
    ("ridden", "ride"),
    ("risen", "rise"),
    ("rode", "ride"),
    ("rose", "rise"),
    ("rung", "ring"),
    ("said", "say"),
    ("sang", "sing"),
    ("sank", "sink"),
    ("sat", "sit"),
    ("saw", "see"),
    ("seen", "see"),
    ("sent", "send"),
    ("shaken", "shake"),
    ("shone", "shine"),
    ("shook", "shake"),
    ("shot", "shoot"),
    ("shown", "show"),
    ("shrank", "shrink"),
    ("slept", "sleep"),
    ("slid", "slide"),
    ("sold", "sell"),
    ("sought", "seek"),
    ("spent", "spend"),
    ("spoke", "speak"),
    ("spoken", "speak"),
    ("sprang", "spring"),
    ("spun", "spin"),
    ("stole", "steal"),
    ("stolen", "steal"),
    ("stood", "stand"),
    ("stuck", "stick"),
    ("sung", "sing"),
    ("sunk", "sink"),
    ("swam", "swim"),
    ("swept", "sweep"),
    ("swore", "swear"),
    ("sworn", "swear"),
    ("swum", "swim"),
    ("swung", "swing"),
    ("taken", "take"),
    ("taught", "teach"),
    ("teeth", "tooth"),
    ("thought", "think"),
    ("threw", "throw"),
    ("thrown", "throw"),
    ("told", "tell"),
    ("took", "take"),
    ("tore", "tear"),
    ("torn", "tear"),
    ("understood", "understand"),
    ("went", "go"),
    ("wept", "weep"),
    ("withdrawn", "withdraw"),
    ("withdrew", "withdraw"),
    ("wives", "wife"),
    ("woke", "wake"),
    ("woken", "wake"),
    ("women", "woman"),
    ("won", "win"),
    ("wore", "wear"),
    ("worn", "wear"),
    ("wound", "wind"),
    ("wove", "weave"),
    ("woven", "weave"),
    ("written", "write"),
    ("wrote", "write"),
];

/// Words that the reader of times and amounts knows, beside numbers, months and weekdays.
const ABOUT_TIME: &[&str] = &[
    "a",
    "afternoon",
    "ago",
    "an",
    "coming",
    "couple",
    "date",
    "day",
    "days",
    "evening",
    "far",
    "few",
    "how",
    "last",
    "long",
    "many",
    "month",
    "months",
    "morning",
    "much",
    "next",
    "night",
    "of",
    "often",
    "old",
    "past",
    "previous",
    "recently",
    "since",
    "soon",
    "tall",
    "the",
    "this",
    "time",
    "today",
    "tomorrow",
    "tonight",
    "upcoming",
    "week",
    "weekend",
    "weekends",
    "weeks",
    "what",
    "when",
    "which",
    "year",
    "years",
    "yesterday",
];

const NUMBERS: &[&str] = &[
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
];

pub(super) fn is_stop(word: &str) -> bool {
    word.len() <= 6 && STOP.binary_search(&word).is_ok()
}

pub(super) fn is_negation(word: &str) -> bool {
    NEGATIONS.binary_search(&word).is_ok()
}

pub(super) fn is_about_time(word: &str) -> bool {
    ABOUT_TIME.binary_search(&word).is_ok()
}

/// The word whose stem an irregular form shares.
pub(super) fn regular(word: &str) -> Option<&'static str> {
    let index = IRREGULAR.binary_search_by(|(form, _)| (*form).cmp(word)).ok()?;
    IRREGULAR.get(index).map(|(_, base)| *base)
}

/// The value of a number in words, up to twelve, beyond which nobody mixes words and digits.
pub(super) fn number(word: &str) -> Option<u32> {
    NUMBERS
        .iter()
        .position(|known| *known == word)
        .and_then(|value| u32::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted_for_binary_search() {
        assert!(STOP.is_sorted());
        assert!(NEGATIONS.is_sorted());
        assert!(ABOUT_TIME.is_sorted());
        assert!(NEGATIONS.iter().all(|word| !is_stop(word)));
        let mut forms: Vec<&str> = IRREGULAR.iter().map(|(form, _)| *form).collect();
        let given = forms.clone();
        forms.sort_unstable();
        assert_eq!(given, forms);
    }
}
