//! Labels: the name of the slot where it is known, else the first words.

use crate::kind::Kind;
use crate::read::Sentence;
use crate::read::list::list;
use crate::read::words::is_in;

/// Words of a label that is not a slot name, and its bytes.
const WORDS: usize = 8;
const BYTES_MAX: usize = 200;

/// The label of a statement.
pub(crate) fn label(kind: Kind, sentence: &Sentence, content: &str) -> String {
    let named = match kind {
        Kind::Decision | Kind::Preference => choice_name(kind, sentence),
        Kind::Fact => slot_name(sentence),
        _ => None,
    };
    let label = named
        .filter(|n| n.chars().any(char::is_alphanumeric))
        .unwrap_or_else(|| first_words(content));
    if label.trim().is_empty() {
        capital(kind.word())
    } else {
        label
    }
}

fn choice_name(kind: Kind, sentence: &Sentence) -> Option<String> {
    let word = if kind == Kind::Decision {
        "decision"
    } else {
        "preference"
    };
    let category = match &sentence.choice {
        Some(choice) => choice.chosen.first().and_then(|c| choice.category(c)),
        None => sentence
            .slots
            .claims
            .iter()
            .find(|c| c.slot.contains("|choice|"))
            .map(|c| c.slot_text.clone()),
    }?;
    Some(capital(&format!("{} {word}", category.replace('-', " "))))
}

fn slot_name(sentence: &Sentence) -> Option<String> {
    let claim = sentence.slots.claims.iter().find(|c| {
        let attribute = c.slot.split('|').nth(1).unwrap_or_default();
        attribute == "is" || attribute.ends_with("when") || is_in(list!("expire where port at"), attribute)
    })?;
    let mut text = claim.slot_text.clone();
    if let Some(stem) = text.strip_suffix(" tokens expiry") {
        text = format!("{stem} expiry");
    }
    (text.len() <= 80).then(|| capital(&text))
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// The first words of a text, cut between words, on one line.
pub(crate) fn first_words(content: &str) -> String {
    let mut out = String::new();
    for word in content.split_whitespace().take(WORDS) {
        if !out.is_empty() && out.len() + 1 + word.len() > BYTES_MAX {
            break;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.extend(word.chars().take(BYTES_MAX / 4));
    }
    out.trim_end_matches(['.', ',', ';', ':', '!', '?']).to_owned()
}
