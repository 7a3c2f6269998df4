//! What the clients remember: the same number gives the same text, and no two give texts that could be taken for one
//! statement, because each is about something with a proper name of its own.

use crate::dice::Dice;

const WHO: [&str; 12] = [
    "The billing team",
    "The night shift",
    "Amara",
    "The mobile crew",
    "Customer support",
    "Ioana",
    "The legal desk",
    "Kenji",
    "The release group",
    "The field office",
    "The archive",
    "The training unit",
];
const DOES: [&str; 10] = [
    "keeps",
    "reviews",
    "collects",
    "labels",
    "repairs",
    "publishes",
    "compares",
    "measures",
    "inspects",
    "forwards",
];
const WHAT: [&str; 12] = [
    "invoices",
    "sensor readings",
    "spare parts",
    "contracts",
    "photographs",
    "backup tapes",
    "floor plans",
    "recipes",
    "maps",
    "drawings",
    "price lists",
    "meeting notes",
];
const WHERE: [&str; 10] = [
    "in Lisbon",
    "near the canal",
    "on the third floor",
    "at the harbour",
    "by the loading dock",
    "in the cellar",
    "at the airport",
    "on the roof",
    "in the old mill",
    "at the clinic",
];

fn pick<'a>(dice: &mut Dice, words: &[&'a str]) -> &'a str {
    words[dice.index(words.len())]
}

/// Label and content of memory number `index`; its content in `edition` 0 is the first one.
pub(crate) fn fact(index: u64, edition: u64) -> (String, String) {
    let mut dice = Dice::new(index ^ 0x5eed).fork(1);
    let name = name(index);
    let (who, does, what) = (pick(&mut dice, &WHO), pick(&mut dice, &DOES), pick(&mut dice, &WHAT));
    let mut dice = dice.fork(edition);
    let place = pick(&mut dice, &WHERE);
    let label = format!("{what} of project {name}");
    let content = format!("{who} {does} {what} for project {name} {place}, and files them under {name}.");
    (label, content)
}

const STARTS: [&str; 16] = [
    "ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "ri", "so", "tu", "va",
];
const ENDS: [&str; 16] = [
    "lor", "min", "tar", "ves", "don", "kel", "ran", "pix", "sol", "bek", "zan", "fur", "gim", "hol", "jad", "wex",
];

/// A speakable name, different for every number. Names that differ are never merged.
pub(crate) fn name(index: u64) -> String {
    let (mut rest, mut name) = (index, String::from("Q"));
    loop {
        name.push_str(STARTS[(rest % 16) as usize]);
        name.push_str(ENDS[(rest / 16 % 16) as usize]);
        rest /= 256;
        if rest == 0 {
            return name;
        }
    }
}

/// The number whose name this is.
pub(crate) fn number(name: &str) -> Option<u64> {
    let rest = name
        .strip_prefix('Q')
        .filter(|rest| !rest.is_empty() && rest.is_ascii())?;
    let mut number: u64 = 0;
    for syllables in rest.as_bytes().chunks(5).rev() {
        let text = str::from_utf8(syllables).ok()?;
        let (start, end) = text.split_at_checked(2)?;
        let start = STARTS.iter().position(|known| *known == start)?;
        let end = ENDS.iter().position(|known| *known == end)?;
        number = number.checked_mul(256)?.checked_add((end * 16 + start) as u64)?;
    }
    Some(number)
}

/// The name in a label; each label ends with it.
pub(crate) fn name_in(label: &str) -> &str {
    label.rsplit(' ').next().unwrap_or(label)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_number_has_its_own_name_and_a_label_ends_with_it() {
        let names: BTreeSet<String> = (0..50_000).map(name).collect();
        assert_eq!(names.len(), 50_000);
        let (label, content) = fact(300, 0);
        assert_eq!(name_in(&label), name(300));
        assert!(content.contains(&name(300)));
        assert_eq!(fact(300, 0), fact(300, 0));
        assert!((0..50_000).all(|index| number(&name(index)) == Some(index)));
        assert_eq!(number("Quebec"), None);
    }
}
