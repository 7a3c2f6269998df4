//! What a clause is: its kind, tags, confidence. First match wins, in the order of the memory semantics.

use super::Speaker;
use super::english::is_english;
use super::split::Piece;
use crate::kind::{Confidence, Kind, Modality};
use crate::read::Sentence;
use crate::read::choice::Choice;
use crate::read::clause::Clause;
use crate::read::list::{WordList, list};
use crate::read::slots::is_taste;
use crate::read::term::{Term, TermKind};
use crate::read::words::{UNRESOLVED, is_content, is_in, verb};

/// What a clause becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    pub(crate) kind: Kind,
    pub(crate) tags: Vec<String>,
    pub(crate) confidence: Confidence,
}

impl Class {
    fn new(kind: Kind, tags: &[&str]) -> Self {
        let tags = tags.iter().map(|t| (*t).to_owned()).collect();
        Self {
            kind,
            tags,
            confidence: Confidence::Inferred,
        }
    }

    fn weak(kind: Kind, tags: &[&str]) -> Self {
        Self {
            confidence: Confidence::Weak,
            ..Self::new(kind, tags)
        }
    }

    fn tag(&mut self, tag: String) {
        self.tags.push(tag);
    }
}

/// Objects that a reader of the single clause cannot resolve.
const THIRD: WordList =
    WordList::new("that this it them these those him her one ones everything anything something nothing all");

struct View<'a> {
    sentence: &'a Sentence,
    speaker: Speaker,
    terms: &'a [Term],
}

/// The class of a clause, or nothing.
pub(crate) fn classify(piece: &Piece, sentence: &Sentence, speaker: Speaker) -> Option<Class> {
    let view = View {
        sentence,
        speaker,
        terms: &piece.terms,
    };
    if !is_english(view.terms) {
        return None;
    }
    if piece.phrase {
        return (view.content_count() >= 2).then(|| Class::new(Kind::Fact, &[]));
    }
    if piece.todo {
        return Some(Class::new(Kind::Note, &["todo"]));
    }
    match sentence.modality {
        Modality::Question => return view.question(),
        Modality::Conditional => return view.uncertain("conditional"),
        Modality::Hedged if view.is_advice() => return view.advice(),
        Modality::Hedged => return view.uncertain("hedged"),
        _ => {}
    }
    if view.is_advice() {
        return view.advice();
    }
    let Some(clause) = sentence.clause.as_ref() else {
        // "No deployments on Fridays."
        let barred = speaker == Speaker::User
            && view.terms.first().is_some_and(|t| t.is_one_of(list!("no")))
            && view.content_count() >= 2;
        return barred.then(|| Class::new(Kind::Concept, &["constraint", "negated"]));
    };
    view.choice(clause)
        .or_else(|| view.rule(clause))
        .or_else(|| view.preference(clause))
        .or_else(|| view.task(clause))
        .or_else(|| view.definition(clause))
        .or_else(|| view.fact(clause))
}

impl View<'_> {
    fn subject<'a>(&'a self, clause: &Clause) -> &'a [Term] {
        self.terms.get(clause.subject.0..clause.subject.1).unwrap_or_default()
    }

    fn rest<'a>(&'a self, clause: &Clause) -> &'a [Term] {
        self.terms.get(clause.group.1..).unwrap_or_default()
    }

    fn content_count(&self) -> usize {
        self.terms
            .iter()
            .filter(|t| !t.is_mark() && is_content(&t.lower))
            .count()
    }

    fn is_ours(&self, clause: &Clause) -> bool {
        clause.lets || self.subject(clause).iter().any(|t| t.is_one_of(list!("we us")))
    }

    fn is_mine(&self, clause: &Clause) -> bool {
        self.subject(clause).first().is_some_and(|t| t.is_one_of(list!("i")))
    }

    fn is_unresolved(&self, clause: &Clause) -> bool {
        let subject = self.subject(clause);
        let lone = subject.iter().filter(|t| !t.is_one_of(UNRESOLVED)).count() == 0;
        lone || subject.iter().any(|t| t.is_one_of(list!("you he she they it there")))
    }

    /// "I love this", "let's do that": nothing to remember.
    fn has_pronoun_object(&self, clause: &Clause) -> bool {
        let rest = self.rest(clause);
        let first = rest.iter().find(|t| !t.is_mark());
        let next = rest.get(1);
        first.is_none_or(|t| t.is_one_of(THIRD) && next.is_none_or(|n| n.is_mark() || !is_content(&n.lower)))
    }

    fn question(&self) -> Option<Class> {
        let request = self
            .terms
            .first()
            .is_some_and(|t| t.is_one_of(list!("can could would will")))
            && self.terms.get(1).is_some_and(|t| t.is_one_of(list!("you")));
        let please = self.terms.iter().any(|t| t.is_one_of(list!("please")));
        // A question needs something it is about: a noun or a name, not only a verb.
        let about = self
            .terms
            .iter()
            .any(|t| t.is_value() || (!t.is_mark() && is_content(&t.lower) && verb(&t.lower).is_none()));
        let nouns = self
            .terms
            .windows(2)
            .any(|w| matches!(w, [a, b] if a.is_one_of(list!("the a our my what which")) && is_content(&b.lower)));
        let personal = self.terms.len() <= 4 && self.terms.iter().any(|t| t.is_one_of(list!("you")));
        (self.speaker == Speaker::User && !request && !please && !personal && (about || nouns))
            .then(|| Class::new(Kind::Question, &[]))
    }

    fn uncertain(&self, tag: &str) -> Option<Class> {
        let addressed = self.terms.iter().any(|t| t.is_one_of(list!("you your please")));
        let clause = self.sentence.clause.as_ref()?;
        let empty = self.has_pronoun_object(clause) && tag == "hedged";
        let options = self.sentence.choice.is_some();
        let lone = self.is_unresolved(clause) && !options && !clause.imperative;
        let least = if options || self.terms.iter().any(Term::is_value) {
            1
        } else {
            2
        };
        if addressed || empty || lone || self.content_count() < least {
            return None;
        }
        Some(Class::weak(Kind::Note, &[tag]))
    }

    /// "You could use X", "I'd recommend X"; from the assistant also "Use X".
    fn is_advice(&self) -> bool {
        let Some(clause) = &self.sentence.clause else {
            return false;
        };
        let to_you = self.subject(clause).iter().any(|t| t.is_one_of(list!("you")));
        let advises = is_in(list!("recommend suggest advise propose"), clause.verb)
            || clause
                .outer
                .is_some_and(|o| is_in(list!("recommend suggest advise propose consider"), o));
        let told = self.speaker == Speaker::Assistant && clause.imperative && !clause.lets;
        (to_you && self.speaker == Speaker::Assistant) || (advises && !clause.passive) || told
    }

    fn advice(&self) -> Option<Class> {
        let choice = self.sentence.choice.as_ref()?;
        let mut class = Class::weak(Kind::Note, &["suggestion"]);
        for chosen in choice
            .chosen
            .iter()
            .filter(|c| c.named.mentions.is_some() || !c.purposes.is_empty())
        {
            class.tag(format!("choice:{}", chosen.named.tag()));
        }
        (class.tags.len() > 1).then_some(class)
    }

    fn choice(&self, clause: &Clause) -> Option<Class> {
        let choice = self.sentence.choice.as_ref()?;
        let ours = clause.imperative || self.is_ours(clause) || self.is_mine(clause);
        let passive = clause.passive || clause.verb == "replace";
        let subject = self.subject(clause);
        if subject.iter().any(|t| t.is_one_of(list!("you"))) || (!ours && !passive) {
            return self.third_party(clause, choice, subject);
        }
        // "Use the latest file" is a request; an option has a name, or a purpose.
        let named = choice.chosen.iter().any(|c| {
            c.named.mentions.is_some()
                || c.named.class.is_some()
                || !c.purposes.is_empty()
                || c.named.shown.starts_with(char::is_uppercase)
        });
        let taken = is_in(
            list!("choose pick select adopt decide settle standardize go stick stay"),
            clause.verb,
        ) || choice.change;
        let told = clause.imperative && !clause.lets;
        if told && !named && clause.verb != "avoid" {
            return None;
        }
        if !named && !taken && !choice.dropped {
            return None;
        }
        // Meetings and reports are dropped too, but are no options.
        let dated = choice
            .chosen
            .iter()
            .any(|c| c.named.shown.to_lowercase().contains("meeting"));
        if dated || (choice.dropped && !named && is_in(list!("remove kill decline"), clause.verb)) {
            return None;
        }
        // "Never use X" is a rule, not a choice.
        if self.terms.iter().any(|t| t.is_one_of(list!("never must")))
            || (clause.imperative && !clause.lets && clause.negations > 0)
        {
            return None;
        }
        let taste = choice.taste
            || clause.verb == "avoid"
            || (self.is_mine(clause) && is_in(list!("prefer like"), clause.verb));
        let kind = if taste { Kind::Preference } else { Kind::Decision };
        let mut class = Class::new(kind, &[]);
        if choice.dropped {
            class.tag("negated".to_owned());
        }
        if self.sentence.modality == Modality::Planned {
            class.tag("planned".to_owned());
        }
        tag_choice(&mut class, choice);
        Some(class)
    }

    fn third_party(&self, clause: &Clause, choice: &Choice, subject: &[Term]) -> Option<Class> {
        if self.is_unresolved(clause) || subject.is_empty() {
            return None;
        }
        let kind = if choice.taste { Kind::Preference } else { Kind::Fact };
        Some(Class::new(kind, &[]))
    }

    /// Constraints and requirements.
    fn rule(&self, clause: &Clause) -> Option<Class> {
        let ours = self.is_ours(clause);
        let mine = self.is_mine(clause);
        let has = |list: WordList| self.terms.iter().any(|t| t.kind == TermKind::Word && t.is_one_of(list));
        if (self.is_unresolved(clause) && !clause.imperative) || mine {
            return None;
        }
        let negated = clause.negations > 0 || has(list!("never no forbidden prohibited"));
        let limit = has(list!("before until without unless"));
        let modal = clause.modal.as_deref().unwrap_or_default();
        let order =
            is_in(list!("must shall"), modal) || (clause.imperative && !clause.lets && has(list!("never always only")));
        let barred = clause.negations > 0
            && (is_in(list!("may"), modal)
                || (modal == "can" && (limit || clause.passive))
                || (modal == "should" && !ours));
        let denied = (clause.passive || clause.verb == "be") && has(list!("forbidden prohibited disallowed banned"))
            || (clause.negations > 0 && has(list!("allowed supported permitted acceptable")));
        let told_not = clause.imperative
            && !clause.lets
            && clause.negations > 0
            && self.speaker == Speaker::User
            && !is_in(list!("forget worry mind bother"), clause.outer.unwrap_or(clause.verb));
        let permits = modal == "may" && clause.negations == 0 && !ours;
        if order || barred || denied || told_not || permits {
            let mut class = Class::new(Kind::Concept, &["constraint"]);
            if negated && !(limit && modal == "can") {
                class.tag("negated".to_owned());
            }
            return Some(class);
        }
        let needed = (clause.passive && clause.verb == "require")
            || has(list!("mandatory"))
            || (has(list!("required")) && clause.verb == "be");
        let needs = is_in(list!("need require"), clause.verb)
            && ours
            && clause.outer.is_none()
            && !self.has_pronoun_object(clause);
        let able = clause.outer == Some("need")
            && ours
            && is_in(
                list!(
                    "support comply handle store keep ensure encrypt retain meet provide allow accept be have scale run work offer"
                ),
                clause.verb,
            );
        let have_to = clause.outer == Some("have") && !mine && !self.rest(clause).is_empty();
        let should = modal == "should" && !ours && !clause.imperative && self.content_count() >= 3;
        if needed || needs || able || have_to || should {
            let mut class = Class::new(Kind::Concept, &["requirement"]);
            if clause.negations > 0 {
                class.tag("negated".to_owned());
            }
            return Some(class);
        }
        None
    }

    fn preference(&self, clause: &Clause) -> Option<Class> {
        let subject = self.subject(clause);
        let rest = self.rest(clause);
        let copula = clause.verb == "be" && (is_taste(subject) || is_taste(rest));
        let likes = is_in(list!("prefer like love hate dislike enjoy favor"), clause.verb)
            || clause
                .outer
                .is_some_and(|o| is_in(list!("prefer like love hate enjoy"), o));
        let person =
            self.is_mine(clause) || self.is_ours(clause) || (!subject.is_empty() && !self.is_unresolved(clause));
        let would = clause.modal.as_deref() == Some("would");
        let habit = self.is_mine(clause)
            && self
                .terms
                .iter()
                .any(|t| t.is_one_of(list!("always never usually generally")))
            && self.content_count() >= 2
            && !is_in(list!("be have know think see hear forget want"), clause.verb);
        let wants = self.is_mine(clause)
            && clause.verb == "want"
            && clause.outer.is_none()
            && self
                .terms
                .iter()
                .any(|t| t.is_one_of(list!("always never every all default")))
            && !self.terms.iter().any(|t| t.is_one_of(list!("you")));
        let avoids = clause.verb == "avoid" && (person || clause.imperative);
        if !(copula || (likes && person && !would) || habit || wants || avoids)
            || (!copula && self.has_pronoun_object(clause))
        {
            return None;
        }
        if self.content_count() < 1 || (clause.outer.is_some() && self.terms.iter().any(|t| t.is_one_of(list!("you"))))
        {
            return None;
        }
        let mut class = Class::new(Kind::Preference, &[]);
        if clause.negations > 0 || is_in(list!("hate dislike avoid"), clause.verb) {
            class.tag("negated".to_owned());
        }
        if let Some(choice) = &self.sentence.choice {
            tag_choice(&mut class, choice);
        } else if let Some(slot) = self.sentence.slots.claims.iter().find(|c| c.slot.contains("|choice|")) {
            class.tag(slot.slot_text.replace(' ', "-"));
            class.tag(format!(
                "choice:{}",
                slot.value_text.to_lowercase().replace([' ', '_'], "-")
            ));
        }
        Some(class)
    }

    /// To-dos and one-off wishes.
    fn task(&self, clause: &Clause) -> Option<Class> {
        let mine = self.is_mine(clause) || self.is_ours(clause);
        let asks_you = self.terms.iter().any(|t| t.is_one_of(list!("you")));
        let needs = mine
            && (clause.outer.is_some_and(|o| is_in(list!("need have want"), o))
                || is_in(list!("need want"), clause.verb));
        let reminder = clause.imperative
            && (clause.outer == Some("forget")
                || (clause.verb == "remember" && self.rest(clause).first().is_some_and(|t| t.is_one_of(list!("to")))));
        let remind = clause.imperative
            && clause.verb == "remind"
            && self.rest(clause).first().is_some_and(|t| t.is_one_of(list!("me us")));
        let reminder = reminder || remind;
        let dated = self.terms.iter().any(|t| t.kind == TermKind::Date);
        let will = self.is_mine(clause) && self.sentence.modality == Modality::Planned && dated && clause.verb != "be";
        let wish = is_in(list!("want"), clause.verb) || clause.outer == Some("want");
        if asks_you
            || !(needs || reminder || will)
            || self.content_count() < 1
            || (wish && !dated)
            || self.has_pronoun_object(clause)
        {
            return None;
        }
        Some(Class::new(Kind::Note, &["todo"]))
    }

    fn fact(&self, clause: &Clause) -> Option<Class> {
        let subject = self.subject(clause);
        if clause.imperative || subject.is_empty() || self.is_unresolved(clause) {
            return None;
        }
        let slots = &self.sentence.slots;
        let own = slots
            .claims
            .iter()
            .find(|c| !c.slot.contains("holds|") && !c.slot.contains("state|") && !c.slot.contains("permit|"));
        let mine = self.is_mine(clause);
        let my = subject.iter().any(|t| t.is_one_of(list!("my")));
        if mine && !self.is_personal(clause) && own.is_none() {
            return None;
        }
        let thin = self.has_pronoun_object(clause) && own.is_none() && !clause.passive;
        if thin || self.content_count() < 2 && own.is_none() {
            return None;
        }
        // Ours without a matter: "We are happy", "We had a chat".
        if self.is_ours(clause)
            && is_in(
                list!("be get go come think know see feel talk discuss want hope"),
                clause.verb,
            )
            && own.is_none()
            && !clause.passive
        {
            return None;
        }
        let mut class = Class::new(Kind::Fact, &[]);
        if self.is_ours(clause) && self.sentence.modality == Modality::Planned {
            class.kind = Kind::Decision;
            class.tag("planned".to_owned());
        }
        if mine || my {
            class.tag("personal".to_owned());
        }
        let own = own.or_else(|| slots.ends.iter().find(|e| !e.slot.contains("holds|")));
        let role = own.is_some_and(|c| {
            is_in(
                list!("owner lead manager maintainer supplier vendor"),
                c.slot.split('|').nth(1).unwrap_or_default(),
            )
        });
        if role {
            class.tag("role".to_owned());
        }
        let scheduled = own.is_some_and(|c| c.slot.split('|').nth(1).is_some_and(|a| a.ends_with("when")));
        let yearly = self.terms.iter().any(|t| t.is_one_of(list!("birthday anniversary")));
        if scheduled && !my && !yearly {
            class.tag("schedule".to_owned());
        }
        if let Some(previous) = slots
            .ends
            .iter()
            .find(|e| e.slot.contains("|where|") || (e.slot.contains("|is|") && !e.value.contains(':')))
        {
            class.tag(format!("previous:{}", previous.value.replace([' ', '_'], "-")));
        }
        if clause.negations > 0 {
            class.tag("negated".to_owned());
        }
        Some(class)
    }

    fn is_personal(&self, clause: &Clause) -> bool {
        let rest = self.rest(clause);
        let first = rest.first();
        if clause.verb == "be" && !clause.passive && !clause.progressive {
            return first.is_some_and(|t| t.is_one_of(list!("a an allergic vegetarian vegan based left-handed colorblind lactose from deaf blind married dyslexic diabetic")))
                && self.content_count() >= 1;
        }
        let had = clause.verb == "have"
            && rest.iter().any(|t| {
                is_content(&t.lower)
                    && !t.is_one_of(list!("question questions problem issue idea bug meeting request doubt"))
            })
            && !rest
                .iter()
                .any(|t| t.is_one_of(list!("question questions problem issue idea bug request doubt")));
        had || is_in(
            list!("live reside speak study work own manage lead maintain oversee"),
            clause.verb,
        ) || (clause.passive && is_in(list!("base call name bear"), clause.verb))
    }

    fn definition(&self, clause: &Clause) -> Option<Class> {
        let means = clause.verb == "mean"
            || (clause.verb == "stand" && self.rest(clause).first().is_some_and(|t| t.is_one_of(list!("for"))))
            || (clause.verb == "refer" && !self.is_unresolved(clause));
        (means && !self.is_unresolved(clause) && self.content_count() >= 2).then(|| Class::new(Kind::Concept, &[]))
    }
}

fn tag_choice(class: &mut Class, choice: &Choice) {
    for chosen in &choice.chosen {
        class.tags.extend(choice.category(chosen));
        class.tag(format!("choice:{}", chosen.named.tag()));
    }
    for previous in &choice.previous {
        class.tag(format!("previous:{}", previous.tag()));
    }
    for rejected in &choice.rejected {
        class.tag(format!("rejected:{}", rejected.tag()));
    }
}
