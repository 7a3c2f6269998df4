//! Singular forms and one spelling per word.

use super::list::WordList;
use super::words::is_in;

/// Words after which a capital or an `s` says nothing, or that only look like a plural.
const NOT_PLURAL: WordList = WordList::new(
    "news https aws ios dns tls css sms gps rds eks ecs gcs ses sqs sns vps always sometimes \
     perhaps besides series species means does has was is as this thus its his ours yours theirs us yes less across \
     goods customs glasses physics mathematics analytics kubernetes redis postgres jenkins sales plus versus basis \
     analysis status access process progress address business class express process success cors macos windows os js \
     rails vitess atlas kinesis iris pandas towards afterwards nowadays canvas bias alias lens whereas",
);

/// A noun or third-person verb without its `s`.
pub(crate) fn singular(lower: &str) -> String {
    if lower.len() <= 3 || !lower.is_ascii() || !lower.ends_with('s') || is_in(NOT_PLURAL, lower) {
        return lower.to_owned();
    }
    if lower.ends_with("ss") || lower.ends_with("us") || lower.ends_with("is") {
        return lower.to_owned();
    }
    for (ending, replacement) in [
        ("ies", "y"),
        ("sses", "ss"),
        ("shes", "sh"),
        ("ches", "ch"),
        ("xes", "x"),
        ("zzes", "zz"),
    ] {
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
    const KEEP: WordList = WordList::new(
        "advise exercise promise raise noise precise otherwise enterprise surprise franchise compromise \
         premise expertise rise wise revise supervise concise disguise praise cruise bruise poise advertise likewise \
         comprise demise devise treatise paradise merchandise improvise televise arise",
    );
    const OUR: &[(&str, &str)] = &[
        ("colour", "color"),
        ("behaviour", "behavior"),
        ("favour", "favor"),
        ("flavour", "flavor"),
        ("honour", "honor"),
        ("labour", "labor"),
        ("neighbour", "neighbor"),
        ("rumour", "rumor"),
        ("humour", "humor"),
        ("harbour", "harbor"),
        ("endeavour", "endeavor"),
        ("vapour", "vapor"),
        ("odour", "odor"),
    ];
    const WHOLE: &[(&str, &str)] = &[
        ("centre", "center"),
        ("licence", "license"),
        ("catalogue", "catalog"),
        ("grey", "gray"),
        ("modelling", "modeling"),
        ("modelled", "modeled"),
        ("cancelled", "canceled"),
        ("cancelling", "canceling"),
        ("defence", "defense"),
        ("analyse", "analyze"),
        ("analysed", "analyzed"),
        ("labelled", "labeled"),
        ("labelling", "labeling"),
        ("travelling", "traveling"),
        ("programme", "program"),
        ("metre", "meter"),
        ("fibre", "fiber"),
        ("cheque", "check"),
        ("ageing", "aging"),
        ("dialogue", "dialog"),
        ("judgement", "judgment"),
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
        ("isation", "ization"),
        ("isations", "izations"),
        ("ise", "ize"),
        ("ised", "ized"),
        ("ises", "izes"),
        ("ising", "izing"),
        ("iser", "izer"),
        ("isers", "izers"),
    ] {
        if let Some(stem) = lower.strip_suffix(ending)
            && stem.len() > 2
            && !KEEP
                .words()
                .any(|w| w.strip_suffix('e').is_some_and(|w| lower.starts_with(w)))
        {
            return format!("{stem}{replacement}");
        }
    }
    lower.to_owned()
}
