//! Numbers with units and currencies as comparison keys: `40k`, `$40,000`, `fifteen minutes`, `1 hour`.
//!
//! Exact: no floats, and what does not fit stays text. A bare `3.10` is not `3.1`: without a unit it may be a version.

use super::token::{Token, TokenKind};
use super::words::is_in;
use crate::read::list::WordList;

/// A quantity that starts at a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Quantity {
    /// The comparison key; equal keys are equal quantities.
    pub(crate) key: String,
    /// How many tokens it takes.
    pub(crate) taken: usize,
    /// It has a unit or currency.
    pub(crate) has_unit: bool,
}

const SMALL: &[(&str, u64)] = &[
    ("zero", 0),
    ("one", 1),
    ("single", 1),
    ("two", 2),
    ("three", 3),
    ("four", 4),
    ("five", 5),
    ("six", 6),
    ("seven", 7),
    ("eight", 8),
    ("nine", 9),
    ("ten", 10),
    ("eleven", 11),
    ("twelve", 12),
    ("thirteen", 13),
    ("fourteen", 14),
    ("fifteen", 15),
    ("sixteen", 16),
    ("seventeen", 17),
    ("eighteen", 18),
    ("nineteen", 19),
    ("twenty", 20),
    ("thirty", 30),
    ("forty", 40),
    ("fifty", 50),
    ("sixty", 60),
    ("seventy", 70),
    ("eighty", 80),
    ("ninety", 90),
];
const SCALES: &[(&str, u128)] = &[
    ("hundred", 100),
    ("thousand", 1_000),
    ("million", 1_000_000),
    ("billion", 1_000_000_000),
];

/// Unit words, their key unit, and how many of the key unit one of them is.
const UNITS: &[(WordList, &str, u128)] = &[
    (WordList::new("ms millisecond milliseconds millis msec"), "ms", 1),
    (WordList::new("s sec secs second seconds"), "ms", 1_000),
    (WordList::new("min mins minute minutes"), "ms", 60_000),
    (WordList::new("h hr hrs hour hours"), "ms", 3_600_000),
    (WordList::new("day days d"), "ms", 86_400_000),
    (WordList::new("week weeks"), "ms", 604_800_000),
    (WordList::new("month months"), "month", 1),
    (WordList::new("year years yr yrs"), "month", 12),
    (WordList::new("b byte bytes"), "byte", 1),
    (WordList::new("kb kilobyte kilobytes"), "kb", 1),
    (WordList::new("mb megabyte megabytes"), "mb", 1),
    (WordList::new("gb gigabyte gigabytes"), "gb", 1),
    (WordList::new("tb terabyte terabytes"), "tb", 1),
    (WordList::new("kib"), "kib", 1),
    (WordList::new("mib"), "mib", 1),
    (WordList::new("gib"), "gib", 1),
    (WordList::new("tib"), "tib", 1),
    (
        WordList::new("mm millimeter millimeters millimetre millimetres"),
        "mm",
        1,
    ),
    (
        WordList::new("cm centimeter centimeters centimetre centimetres"),
        "mm",
        10,
    ),
    (WordList::new("m meter meters metre metres"), "mm", 1_000),
    (
        WordList::new("km kilometer kilometers kilometre kilometres"),
        "mm",
        1_000_000,
    ),
    (WordList::new("mile miles"), "mile", 1),
    (WordList::new("g gram grams"), "g", 1),
    (WordList::new("kg kilogram kilograms kilo kilos"), "g", 1_000),
    (WordList::new("lb lbs pound-weight"), "lb", 1),
    (WordList::new("% percent pct"), "percent", 1),
    (WordList::new("usd dollar dollars"), "usd", 1),
    (WordList::new("eur euro euros"), "eur", 1),
    (WordList::new("gbp pounds"), "gbp", 1),
    (WordList::new("jpy yen"), "jpy", 1),
    (WordList::new("chf franc francs"), "chf", 1),
];

/// Units so short that they only count when written against the number.
const TIGHT: WordList = WordList::new("s h d m g b");

fn unit(word: &str) -> Option<(&'static str, u128)> {
    UNITS
        .iter()
        .find(|(words, _, _)| is_in(*words, word))
        .map(|(_, key, factor)| (*key, *factor))
}

/// A decimal as an integer and a number of decimal places.
#[derive(Clone, Copy)]
struct Decimal {
    digits: u128,
    places: u32,
}

impl Decimal {
    fn parse(text: &str) -> Option<Self> {
        if text.is_empty() || text.len() > 24 {
            return None;
        }
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let groups: Vec<&str> = whole.split(',').collect();
        let grouped = groups.len() == 1
            || (groups.iter().skip(1).all(|g| g.len() == 3)
                && groups.first().is_some_and(|g| (1..=3).contains(&g.len())));
        let digits: String = groups.concat() + fraction;
        if !grouped || digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        Some(Self {
            digits: digits.parse().ok()?,
            places: u32::try_from(fraction.len()).ok()?,
        })
    }

    fn times(self, factor: u128) -> Option<Self> {
        Some(Self {
            digits: self.digits.checked_mul(factor)?,
            places: self.places,
        })
    }

    fn key(self) -> String {
        let Self { mut digits, mut places } = self;
        while places > 0 && digits.is_multiple_of(10) {
            digits /= 10;
            places -= 1;
        }
        if places == 0 {
            digits.to_string()
        } else {
            format!("{digits}e-{places}")
        }
    }
}

/// The quantity that starts at token `at`, if one does.
pub(crate) fn quantity(tokens: &[Token], at: usize) -> Option<Quantity> {
    let token = tokens.get(at)?;
    match token.kind {
        TokenKind::Number => numeric(tokens, at, token),
        TokenKind::Word => in_words(tokens, at),
        _ => None,
    }
}

fn numeric(tokens: &[Token], at: usize, token: &Token) -> Option<Quantity> {
    let raw = token.lower.as_str();
    let sign = if raw.starts_with('-') { "-" } else { "" };
    let bare = raw.trim_start_matches(['+', '-']);
    let (currency, bare) = match bare.chars().next()? {
        '$' => (Some("usd"), bare.get(1..)?),
        '€' => (Some("eur"), bare.get(3..)?),
        '£' => (Some("gbp"), bare.get(2..)?),
        '¥' => (Some("jpy"), bare.get(2..)?),
        _ => (None, bare),
    };
    let split = bare
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',')
        .unwrap_or(bare.len());
    let (number, suffix) = bare.split_at(split);
    let literal = || Quantity {
        key: format!("n:{raw}"),
        taken: 1,
        has_unit: false,
    };
    let (number, suffix, eur) = (number, suffix.trim_end_matches('€'), suffix.ends_with('€'));
    let currency = if eur { Some("eur") } else { currency };
    let Some(value) = Decimal::parse(number) else {
        return Some(literal());
    };
    if matches!(suffix, "st" | "nd" | "rd" | "th") {
        return Some(Quantity {
            key: format!("ord:{}", value.key()),
            taken: 1,
            has_unit: false,
        });
    }
    let (mut value, mut suffix, mut scaled) = (value, suffix, false);
    for (mark, factor) in [
        ("k", 1_000),
        ("mm", 1_000_000),
        ("m", 1_000_000),
        ("bn", 1_000_000_000),
        ("b", 1_000_000_000),
    ] {
        let fits = suffix == mark && (mark == "k" || currency.is_some());
        if fits {
            value = value.times(factor)?;
            (suffix, scaled) = ("", true);
        }
    }
    let mut taken = 1;
    if suffix.is_empty()
        && let Some(scale) = tokens
            .get(at + 1)
            .and_then(|t| SCALES.iter().find(|(w, _)| *w == t.lower))
    {
        value = value.times(scale.1)?;
        (taken, scaled) = (2, true);
    }
    finish(tokens, at, taken, value, scaled, (sign, currency, suffix)).or_else(|| Some(literal()))
}

fn finish(
    tokens: &[Token],
    at: usize,
    mut taken: usize,
    value: Decimal,
    scaled: bool,
    (sign, currency, suffix): (&str, Option<&'static str>, &str),
) -> Option<Quantity> {
    if let Some(currency) = currency {
        if suffix.is_empty() {
            // "$40k USD" says it twice.
            if tokens
                .get(at + taken)
                .and_then(|t| unit(&t.lower))
                .is_some_and(|(u, _)| u == currency)
            {
                taken += 1;
            }
            return Some(Quantity {
                key: format!("q:{sign}{} {currency}", value.key()),
                taken,
                has_unit: true,
            });
        }
        return None;
    }
    let following = if suffix.is_empty() {
        let next = tokens.get(at + taken);
        taken += usize::from(next.is_some_and(|t| unit_of_token(t).is_some()));
        next.and_then(unit_of_token)
    } else {
        Some(unit(suffix)?)
    };
    match following {
        Some((name, factor)) => {
            let key = format!("q:{sign}{} {name}", value.times(factor)?.key());
            Some(Quantity {
                key,
                taken,
                has_unit: true,
            })
        }
        // Without a unit decimals stay as written: 3.10 may be a version.
        None if value.places > 0 && !scaled => None,
        None => Some(Quantity {
            key: format!("n:{sign}{}", value.key()),
            taken,
            has_unit: false,
        }),
    }
}

fn unit_of_token(token: &Token) -> Option<(&'static str, u128)> {
    let fits = (token.kind == TokenKind::Word && !is_in(TIGHT, &token.lower)) || token.text == "%";
    if fits { unit(&token.lower) } else { None }
}

fn in_words(tokens: &[Token], at: usize) -> Option<Quantity> {
    let (mut total, mut group, mut taken) = (0_u128, 0_u128, 0_usize);
    let mut seen = false;
    while let Some(token) = tokens.get(at + taken).filter(|t| t.kind == TokenKind::Word) {
        let word = token.lower.as_str();
        let pair = word
            .split_once('-')
            .and_then(|(tens, ones)| Some(small(tens)? + small(ones)?));
        if let Some(value) = small(word).or(pair) {
            // "two three" are two numbers; "twenty five" is one.
            let fits =
                !seen || (group.is_multiple_of(100) || (group % 100 >= 20 && group.is_multiple_of(10) && value < 10));
            if !fits {
                break;
            }
            group += u128::from(value);
            seen = true;
        } else if let Some((_, scale)) = SCALES.iter().find(|(w, _)| *w == word) {
            if *scale == 100 {
                group = group.max(1).checked_mul(100)?;
            } else {
                total = total.checked_add(group.max(1).checked_mul(*scale)?)?;
                group = 0;
            }
            seen = true;
        } else {
            break;
        }
        taken += 1;
        if taken > 12 {
            break;
        }
    }
    if taken == 0 {
        return ordinal(tokens, at);
    }
    let value = Decimal {
        digits: total.checked_add(group)?,
        places: 0,
    };
    finish(tokens, at, taken, value, true, ("", None, ""))
}

fn ordinal(tokens: &[Token], at: usize) -> Option<Quantity> {
    const ORDINALS: WordList =
        WordList::new("zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth");
    let word = tokens.get(at)?.lower.as_str();
    let place = ORDINALS.words().position(|w| w == word)?;
    Some(Quantity {
        key: format!("ord:{place}"),
        taken: 1,
        has_unit: false,
    })
}

fn small(word: &str) -> Option<u64> {
    SMALL.iter().find(|(w, _)| *w == word).map(|(_, v)| *v)
}
