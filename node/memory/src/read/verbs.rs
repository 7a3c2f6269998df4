//! Verbs with their forms.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::list::WordList;
use super::words::is_in;

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

const REGULAR: WordList = WordList::new(
    "accept access act adopt add advertise affect agree aim allow analyze announce appear apply \
     approve archive arrive ask assign attend audit authenticate authorize avoid back ban base batch become behave \
     belong benefit block book bother break browse bump cache call cancel cause change charge check clean clear \
     close collect communicate compile complete compress configure confirm connect consider consist consume contain \
     continue convert cost cover crash create decide decline decommission decrease default delay delete deliver \
     depend deploy deprecate describe design detect develop disable discard discuss dislike display document drain \
     edit emit employ enable encrypt end enforce enjoy ensure enter equal escalate estimate exceed exclude execute \
     exist expect expire explain expose export extend fail favor fetch fill filter finish fix flush focus follow \
     force format gather generate grow guarantee handle happen head help host identify ignore implement import \
     improve include increase index inform inherit initialize install integrate introduce invalidate invite involve \
     issue join kill lack last launch learn license like limit link list listen live load locate lock abandon ditch scrap sunset answer remind intend employ vacation cook bake log look love lower \
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
     total trace triage unblock unify vary wire witness",
);
const DOUBLING: WordList = WordList::new(
    "stop drop plan ship log prefer refer commit submit permit admit map pin tag step chat plug slip \
     snap trim unplug ban swap wrap equip skip prep occur transfer",
);
const IRREGULAR: &[(&str, &str, &str)] = &[
    ("be", "was", "been"),
    ("begin", "began", "begun"),
    ("break", "broke", "broken"),
    ("bring", "brought", "brought"),
    ("build", "built", "built"),
    ("buy", "bought", "bought"),
    ("choose", "chose", "chosen"),
    ("come", "came", "come"),
    ("cost", "cost", "cost"),
    ("cut", "cut", "cut"),
    ("deal", "dealt", "dealt"),
    ("do", "did", "done"),
    ("drive", "drove", "driven"),
    ("eat", "ate", "eaten"),
    ("fall", "fell", "fallen"),
    ("feed", "fed", "fed"),
    ("feel", "felt", "felt"),
    ("find", "found", "found"),
    ("fit", "fit", "fit"),
    ("forbid", "forbade", "forbidden"),
    ("forget", "forgot", "forgotten"),
    ("freeze", "froze", "frozen"),
    ("get", "got", "gotten"),
    ("give", "gave", "given"),
    ("go", "went", "gone"),
    ("grow", "grew", "grown"),
    ("have", "had", "had"),
    ("hit", "hit", "hit"),
    ("hold", "held", "held"),
    ("keep", "kept", "kept"),
    ("know", "knew", "known"),
    ("lead", "led", "led"),
    ("leave", "left", "left"),
    ("lend", "lent", "lent"),
    ("let", "let", "let"),
    ("lose", "lost", "lost"),
    ("make", "made", "made"),
    ("mean", "meant", "meant"),
    ("meet", "met", "met"),
    ("overrun", "overran", "overrun"),
    ("oversee", "oversaw", "overseen"),
    ("put", "put", "put"),
    ("read", "read", "read"),
    ("rewrite", "rewrote", "rewritten"),
    ("ride", "rode", "ridden"),
    ("run", "ran", "run"),
    ("say", "said", "said"),
    ("see", "saw", "seen"),
    ("sell", "sold", "sold"),
    ("send", "sent", "sent"),
    ("set", "set", "set"),
    ("shut", "shut", "shut"),
    ("sit", "sat", "sat"),
    ("sleep", "slept", "slept"),
    ("speak", "spoke", "spoken"),
    ("spend", "spent", "spent"),
    ("split", "split", "split"),
    ("stand", "stood", "stood"),
    ("stick", "stuck", "stuck"),
    ("take", "took", "taken"),
    ("teach", "taught", "taught"),
    ("tell", "told", "told"),
    ("think", "thought", "thought"),
    ("wear", "wore", "worn"),
    ("win", "won", "won"),
    ("write", "wrote", "written"),
    ("quit", "quit", "quit"),
    ("drink", "drank", "drunk"),
    ("become", "became", "become"),
    ("draw", "drew", "drawn"),
    ("fly", "flew", "flown"),
    ("pay", "paid", "paid"),
    ("reset", "reset", "reset"),
    ("rebuild", "rebuilt", "rebuilt"),
    ("throw", "threw", "thrown"),
    ("understand", "understood", "understood"),
    ("steal", "stole", "stolen"),
];

fn inflect(base: &str, suffix: &str) -> String {
    let (stem, last) = base.split_at(base.len().saturating_sub(1));
    let consonant_y = last == "y" && !stem.ends_with(['a', 'e', 'o', 'u']);
    match suffix {
        "s" if consonant_y => format!("{stem}ies"),
        "s" if base.ends_with("ss")
            || base.ends_with("sh")
            || base.ends_with("ch")
            || matches!(last, "x" | "z" | "o") =>
        {
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
        for (form, kind) in [
            ("has", Form::S),
            ("is", Form::S),
            ("are", Form::Base),
            ("am", Form::Base),
            ("were", Form::Past),
        ] {
            map.insert(form.to_owned(), (if form == "has" { "have" } else { "be" }, kind));
        }
        map.insert("transferred".to_owned(), ("transfer", Form::Past));
        map.insert("cancelled".to_owned(), ("cancel", Form::Past));
        map.insert("labelled".to_owned(), ("label", Form::Past));
        map
    });
    MAP.get(lower).copied()
}
