//! Made-up facts for load and for kills: the same number gives the same text on every machine, and no two numbers give
//! texts that the duplicate rules could take for one statement.

/// SplitMix64: small, good enough to choose words and moments, and its seed is printed when a test fails.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    /// 0 to `bound - 1`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound.max(1)
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[usize::try_from(self.below(words.len() as u64)).unwrap_or(0)]
    }
}

const WHO: &[&str] = &[
    "The billing team",
    "Our data platform",
    "The night shift",
    "Amara",
    "The warehouse in Ghent",
    "The mobile crew",
    "Customer support",
    "The search service",
    "Ioana",
    "The hardware lab",
    "The payments gateway",
    "The legal desk",
    "The design studio",
    "Kenji",
    "The release group",
    "The field office",
    "The archive",
    "The training unit",
];
const DOES: &[&str] = &[
    "keeps",
    "reviews",
    "ships",
    "collects",
    "labels",
    "repairs",
    "publishes",
    "compares",
    "schedules",
    "measures",
    "translates",
    "rotates",
    "restores",
    "samples",
    "orders",
    "inspects",
    "prints",
    "forwards",
];
const WHAT: &[&str] = &[
    "invoices",
    "sensor readings",
    "spare parts",
    "contracts",
    "photographs",
    "backup tapes",
    "delivery notes",
    "test reports",
    "floor plans",
    "recipes",
    "maps",
    "customer letters",
    "voice recordings",
    "seed samples",
    "travel claims",
    "drawings",
    "price lists",
    "access badges",
    "battery packs",
    "meeting notes",
];
const HOW: &[&str] = &[
    "with a small script",
    "by hand",
    "under supervision",
    "through the old portal",
    "from a shared folder",
    "behind the second door",
    "on the blue terminal",
    "with two witnesses",
    "using the portable scanner",
    "after the morning call",
    "before the lorry leaves",
    "in batches",
    "without gloves",
    "over a slow line",
];
const WHERE: &[&str] = &[
    "in Lisbon",
    "near the canal",
    "on the third floor",
    "at the harbour",
    "in the glass house",
    "by the loading dock",
    "in the cellar",
    "at the airport",
    "in the northern depot",
    "on the roof",
    "in the old mill",
    "at the clinic",
];
const WHY: &[&str] = &[
    "because the auditors ask for it",
    "so that nobody has to wait",
    "since the flood of last spring",
    "as the insurer demands",
    "because the machine overheats",
    "to keep the noise down",
    "so that prices stay fair",
    "because two copies went missing",
    "as agreed with the council",
    "to spare the older printer",
];

/// Fact number `index`: a label and about 24 words of content.
pub fn fact(index: u64) -> (String, String) {
    let mut dice = Dice::new(index.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x5eed);
    let name = name(index);
    let (who, does, what) = (dice.pick(WHO), dice.pick(DOES), dice.pick(WHAT));
    let (how, place, why) = (dice.pick(HOW), dice.pick(WHERE), dice.pick(WHY));
    let label = format!("{what} of project {name}");
    let content = format!("{who} {does} {what} for project {name} {how} {place}, {why}, and files them under {name}.");
    (label, content)
}

/// A question that fact number `index` answers.
pub fn question(index: u64) -> String {
    let mut dice = Dice::new(index.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x5eed);
    let (who, does, what) = (dice.pick(WHO), dice.pick(DOES), dice.pick(WHAT));
    format!("Who {does} {what} for project {}? {who}?", name(index))
}

/// A speakable name, different for every number. It looks like a proper name, and names that differ are never merged.
pub fn name(index: u64) -> String {
    const STARTS: [&str; 16] = [
        "ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "ri", "so", "tu", "va",
    ];
    const ENDS: [&str; 16] = [
        "lor", "min", "tar", "ves", "don", "kel", "ran", "pix", "sol", "bek", "zan", "fur", "gim", "hol", "jad", "wex",
    ];
    let (mut rest, mut name) = (index, String::from("Q"));
    loop {
        let (start, end) = ((rest % 16) as usize, (rest / 16 % 16) as usize);
        name.push_str(STARTS[start]);
        name.push_str(ENDS[end]);
        rest /= 256;
        if rest == 0 {
            return name;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_number_has_its_own_name_and_text() {
        let names: BTreeSet<String> = (0..100_000).map(name).collect();
        assert_eq!(names.len(), 100_000);
        assert_eq!(fact(7), fact(7));
        assert_ne!(fact(7).1, fact(8).1);
    }

    #[test]
    fn a_fact_has_about_24_words() {
        for index in 0..1_000 {
            let words = fact(index).1.split_whitespace().count();
            assert!((16..=32).contains(&words), "{words} words: {}", fact(index).1);
        }
    }
}
