//! Which characters make words, and which scripts write without spaces.

/// How a character is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Part of a word that spaces delimit.
    Word,
    /// Part of a script whose words are not delimited, or (Hangul) carry their particles with them. Runs of different
    /// families are cut: Han and Kana mix within a word, the others do not.
    Run(Family),
    /// Joins parts of an identifier when it stands between word characters.
    Joiner,
    /// Apostrophes of all kinds.
    Apostrophe,
    /// Invisible inside of a word.
    Ignored,
    /// Everything else ends a word.
    Other,
}

/// Families of scripts read by pairs of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    EastAsian,
    Hangul,
    Thai,
    Lao,
    Myanmar,
    Khmer,
}

pub(super) fn class(c: char) -> Class {
    match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' => Class::Word,
        '_' | '-' | '.' | '/' | '\\' | ':' | '@' | '+' | '#' | '~' | '\u{2010}' | '\u{2011}' => Class::Joiner,
        '\'' | '\u{2018}' | '\u{2019}' | '\u{2bc}' | '`' | '\u{b4}' => Class::Apostrophe,
        c if c.is_ascii() => Class::Other,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{fe00}'..='\u{fe0f}' => Class::Ignored,
        '\u{e00}'..='\u{e7f}' if c != '\u{e3f}' => Class::Run(Family::Thai),
        '\u{e80}'..='\u{eff}' => Class::Run(Family::Lao),
        '\u{1000}'..='\u{109f}' if !matches!(c, '\u{104a}' | '\u{104b}') => Class::Run(Family::Myanmar),
        '\u{1780}'..='\u{17d3}' | '\u{17dd}'..='\u{17e9}' => Class::Run(Family::Khmer),
        '\u{1100}'..='\u{11ff}' | '\u{3130}'..='\u{318f}' | '\u{ac00}'..='\u{d7ff}' => Class::Run(Family::Hangul),
        '\u{3005}'..='\u{3007}'
        | '\u{3041}'..='\u{3096}'
        | '\u{3099}'..='\u{309a}'
        | '\u{309d}'..='\u{309f}'
        | '\u{30a1}'..='\u{30fa}'
        | '\u{30fc}'..='\u{30ff}'
        | '\u{3105}'..='\u{312f}'
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}' => Class::Run(Family::EastAsian),
        // Vowel signs and viramas of Indic scripts belong to their word, like combining accents.
        '\u{300}'..='\u{36f}' | '\u{64b}'..='\u{65f}' | '\u{900}'..='\u{dff}'
            if !matches!(c, '\u{964}' | '\u{965}') =>
        {
            Class::Word
        }
        c if c.is_alphanumeric() => Class::Word,
        _ => Class::Other,
    }
}

/// Whether accents on this letter are folded: they are ornaments in Latin and Greek, and letters of their own elsewhere.
pub(super) fn folds_accents(base: char) -> bool {
    matches!(base, 'a'..='z' | 'A'..='Z' | '\u{c0}'..='\u{24f}' | '\u{370}'..='\u{3ff}' | '\u{1e00}'..='\u{1fff}')
}

/// Letters that are no base plus accent, and are typed as others where a keyboard lacks them.
pub(super) fn plain_letters(c: char) -> Option<&'static str> {
    Some(match c {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'đ' | 'ð' => "d",
        'ł' => "l",
        'þ' => "th",
        'ı' => "i",
        'ς' => "σ",
        _ => return None,
    })
}
