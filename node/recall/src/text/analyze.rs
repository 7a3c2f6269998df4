//! The reader itself: one pass over the characters, which cuts the text into chunks and hands each to its reader.

mod identifiers;
mod times;

use std::cell::RefCell;

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization;

use super::calendar::{self, Day};
use super::script::{self, Class, Family};
use super::words;

use identifiers::camel_parts;

/// How a term came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// Stem of a word, or a number.
    Word,
    /// A word as it was written, where that differs from its stem: names, accents. Begins with '='.
    Written,
    /// A whole identifier, path, version or compound.
    Whole,
    /// Two neighbouring characters of a script without spaces.
    Pair,
    /// One character of such a script.
    Single,
    /// A day of the year, such as "@05-08".
    Day,
}

impl Form {
    /// Whether it stands for something that was written, and is not a second spelling of it.
    pub const fn is_word(self) -> bool {
        !matches!(self, Self::Written)
    }
}

/// How much is read.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most terms.
    pub terms: usize,
    /// Bytes of a term; what is longer counts by its beginning.
    pub term_bytes: usize,
}

impl Limits {
    /// For what is indexed. 1 MiB of ordinary text has some 150,000 words; beyond the limit words are not found.
    pub const DOCUMENT: Self = Self {
        terms: 65_536,
        term_bytes: 128,
    };
    /// For what is asked: a query may be a pasted page, but its first words must be enough.
    pub const QUERY: Self = Self {
        terms: 96,
        term_bytes: 128,
    };
}

/// What the reader has to know beside the text.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// The day from which "yesterday" counts. None leaves such words alone.
    pub said_on: Option<Day>,
    asks: bool,
}

impl Context {
    /// For a text that was said on a day.
    pub const fn said_on(day: Option<Day>) -> Self {
        Self {
            said_on: day,
            asks: false,
        }
    }

    /// For a query.
    pub const fn query() -> Self {
        Self {
            said_on: None,
            asks: true,
        }
    }
}

/// What was seen on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Analysis {
    /// Terms that count as length.
    pub length: u32,
    /// A negation stands in it.
    pub negated: bool,
    /// A date, a clock time, or a word like "yesterday" or "ago" stands in it.
    pub says_when: bool,
    /// A number stands in it.
    pub says_number: bool,
    /// It asks for a time.
    pub asks_when: bool,
    /// It asks for a number.
    pub asks_number: bool,
}

/// Reads a text and hands each term to `sink`, in order, with repetitions.
pub fn analyze(text: &str, context: &Context, limits: &Limits, sink: &mut dyn FnMut(&str, Form)) -> Analysis {
    BUFFERS.with_borrow_mut(|buffers| {
        let mut normal = std::mem::take(&mut buffers.normal);
        normal.clear();
        if text.is_ascii() {
            normal.push_str(text);
        } else {
            normal.extend(text.nfkc().filter(|c| script::class(*c) != Class::Ignored));
        }
        let mut reader = Reader {
            context,
            limits,
            sink,
            buffers,
            emitted: 0,
            analysis: Analysis::default(),
            before: [Seen::Other; 2],
        };
        reader.read(&normal);
        let analysis = reader.analysis;
        if normal.capacity() > KEPT_BYTES_MAX {
            normal = String::new();
        }
        buffers.normal = normal;
        analysis
    })
}

/// A buffer larger than this is given back after the text that needed it.
const KEPT_BYTES_MAX: usize = 1 << 18;
/// Words remembered. Text repeats its words; a hit costs a comparison instead of a stemmer run and a dozen searches.
const WORDS_REMEMBERED: usize = 4_096;

/// A word with what is known of it.
#[derive(Clone, Default)]
struct Remembered {
    word: String,
    stem: String,
    known: Known,
}

/// What the lists say about a word.
#[derive(Clone, Copy, Default)]
struct Known {
    stop: bool,
    negation: bool,
    /// It says nothing about time, amounts or what is asked for.
    timeless: bool,
}

/// Whether a stemmer has anything to say about it.
fn has_stem(folded: &str) -> bool {
    folded.len() > 2 && folded.bytes().all(|b| b.is_ascii_lowercase())
}

struct Buffers {
    normal: String,
    lower: String,
    folded: String,
    term: String,
    stemmer: Stemmer,
    words: Vec<Remembered>,
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::new(Buffers {
        normal: String::new(),
        lower: String::new(),
        folded: String::new(),
        term: String::new(),
        stemmer: Stemmer::create(Algorithm::English),
        words: vec![Remembered::default(); WORDS_REMEMBERED],
    });
}

/// What a word means for the words after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Other,
    Past,
    Coming,
    Present,
    Number(i64),
    Days(i64),
    Months(i64),
    Month(u32),
    What,
    How,
}

/// What stands between spaces and marks.
struct Chunk {
    start: usize,
    /// Nothing but letters and digits.
    plain: bool,
}

struct Reader<'a> {
    context: &'a Context,
    limits: &'a Limits,
    sink: &'a mut dyn FnMut(&str, Form),
    buffers: &'a mut Buffers,
    emitted: usize,
    analysis: Analysis,
    /// The two words before, the nearer one first.
    before: [Seen; 2],
}

impl Reader<'_> {
    fn read(&mut self, text: &str) {
        let mut chunk: Option<Chunk> = None;
        let mut run: Option<(usize, Family)> = None;
        for (at, c) in text.char_indices() {
            if self.full() {
                break;
            }
            let class = script::class(c);
            if let Some((start, family)) = run
                && class != Class::Run(family)
            {
                self.run(&text[start..at]);
                run = None;
            }
            match class {
                Class::Word | Class::Joiner | Class::Apostrophe => {
                    let chunk = chunk.get_or_insert(Chunk { start: at, plain: true });
                    chunk.plain &= class == Class::Word;
                }
                Class::Run(_) | Class::Other | Class::Ignored => {
                    if let Some(chunk) = chunk.take() {
                        self.chunk(&text[chunk.start..at], chunk.plain);
                    }
                    if let (Class::Run(family), None) = (class, run) {
                        run = Some((at, family));
                    }
                }
            }
        }
        if let Some(chunk) = chunk {
            self.chunk(&text[chunk.start..], chunk.plain);
        }
        if let Some((start, _)) = run {
            self.run(&text[start..]);
        }
    }

    fn full(&self) -> bool {
        self.emitted >= self.limits.terms
    }

    fn emit(&mut self, term: &str, form: Form) {
        if term.is_empty() || self.full() {
            return;
        }
        self.emitted += 1;
        self.analysis.length += u32::from(matches!(form, Form::Word | Form::Whole | Form::Pair));
        (self.sink)(cut(term, self.limits.term_bytes), form);
    }

    /// Script without spaces: every character, and every pair.
    fn run(&mut self, text: &str) {
        let mut ends = text.char_indices().map(|(at, c)| (at, at + c.len_utf8()));
        let mut before = ends.next();
        if let Some((start, end)) = before {
            self.emit(&text[start..end], Form::Single);
        }
        for (at, end) in ends {
            if self.full() {
                return;
            }
            self.emit(&text[at..end], Form::Single);
            if let Some((start, _)) = before {
                self.emit(&text[start..end], Form::Pair);
            }
            before = Some((at, end));
        }
        self.remember(Seen::Other);
    }

    /// What stands between spaces and marks: a word, or several that something joins.
    fn chunk(&mut self, raw: &str, plain: bool) {
        if plain {
            return self.word(raw);
        }
        let is_edge = |c: char| matches!(script::class(c), Class::Joiner | Class::Apostrophe);
        let head = raw.trim_start_matches(is_edge);
        let body = head.trim_end_matches(is_edge);
        if body.is_empty() {
            return;
        }
        // C++, C#: the mark is part of the name.
        let tail = &head[body.len()..];
        if body.len() <= 2 && (tail.starts_with("++") || tail.starts_with('#')) {
            let mut name = body.to_lowercase();
            name.push_str(if tail.starts_with('#') { "#" } else { "++" });
            self.emit(&name, Form::Whole);
            self.remember(Seen::Other);
        } else if body.contains(|c| script::class(c) == Class::Joiner) {
            self.joined(body);
        } else if body.contains(|c| script::class(c) == Class::Apostrophe) {
            self.with_apostrophe(body);
        } else {
            self.word(body);
        }
    }

    /// One word without joiners.
    fn word(&mut self, raw: &str) {
        let raw = cut(raw, self.limits.term_bytes);
        let mut lower = std::mem::take(&mut self.buffers.lower);
        let mut folded = std::mem::take(&mut self.buffers.folded);
        lower.clear();
        folded.clear();
        fold(raw, &mut folded);
        if raw.is_ascii() {
            lower.push_str(&folded);
        } else {
            lower.extend(raw.chars().flat_map(char::to_lowercase));
        }
        self.lower_word(raw, &lower, &folded);
        self.buffers.lower = lower;
        self.buffers.folded = folded;
    }

    fn lower_word(&mut self, raw: &str, lower: &str, folded: &str) {
        if folded.bytes().all(|b| b.is_ascii_digit()) {
            return self.digits(folded);
        }
        if folded.bytes().any(|b| b.is_ascii_digit()) {
            return self.with_digits(folded);
        }
        let known = self.known(folded);
        self.analysis.negated |= known.negation;
        if known.timeless {
            self.remember(Seen::Other);
        } else {
            self.time_word(folded);
        }
        if known.stop {
            return;
        }
        if !known.timeless
            && let Some(value) = words::number(folded)
        {
            // "one" is rarely a number.
            self.analysis.says_number |= value != 1;
            return self.emit(&value.to_string(), Form::Word);
        }
        let has_inner_capital = raw.chars().skip(1).any(char::is_uppercase);
        if has_inner_capital && camel_parts(raw).nth(1).is_some() {
            self.emit(folded, Form::Whole);
            for part in camel_parts(raw) {
                let mut part_folded = String::new();
                fold(part, &mut part_folded);
                if !words::is_stop(&part_folded) && part_folded.chars().nth(1).is_some() {
                    self.stem(&part_folded);
                }
            }
            return;
        }
        let same = self.stem(folded);
        // The written form helps where the stem loses something: in names, and in accents.
        let is_name = raw.chars().next().is_some_and(char::is_uppercase) || self.context.asks;
        if (is_name && !same) || lower != folded {
            self.written(lower);
        }
    }

    fn written(&mut self, lower: &str) {
        let mut term = std::mem::take(&mut self.buffers.term);
        term.clear();
        term.push('=');
        term.push_str(lower);
        self.emit(&term, Form::Written);
        self.buffers.term = term;
    }

    /// Gives the stem; says whether it equals the word.
    fn stem(&mut self, folded: &str) -> bool {
        if !has_stem(folded) {
            self.emit(folded, Form::Word);
            return true;
        }
        let place = self.remembered(folded);
        let entry = std::mem::take(&mut self.buffers.words[place]);
        self.emit(&entry.stem, Form::Word);
        let same = entry.word == entry.stem;
        self.buffers.words[place] = entry;
        same
    }

    /// What the lists say about a word.
    fn known(&mut self, folded: &str) -> Known {
        if !folded.bytes().all(|b| b.is_ascii_lowercase()) {
            return Known {
                timeless: true,
                ..Known::default()
            };
        }
        let place = self.remembered(folded);
        self.buffers.words[place].known
    }

    /// Where a word of plain letters is remembered, which it is from now on.
    fn remembered(&mut self, folded: &str) -> usize {
        let hash = folded
            .bytes()
            .fold(5_381_usize, |hash, b| hash.wrapping_mul(33) ^ usize::from(b));
        let place = (hash ^ hash >> 11) % WORDS_REMEMBERED;
        let entry = &mut self.buffers.words[place];
        if entry.word != folded {
            entry.word.clear();
            entry.word.push_str(folded);
            entry.stem.clear();
            if has_stem(folded) {
                entry
                    .stem
                    .push_str(&self.buffers.stemmer.stem(words::regular(folded).unwrap_or(folded)));
            } else {
                entry.stem.push_str(folded);
            }
            entry.known = Known {
                stop: words::is_stop(folded),
                negation: words::is_negation(folded),
                timeless: !words::is_about_time(folded)
                    && words::number(folded).is_none()
                    && calendar::month_of(folded).is_none()
                    && calendar::weekday_of(folded).is_none(),
            };
        }
        place
    }

    fn digits(&mut self, digits: &str) {
        self.analysis.says_number = true;
        let value = digits.parse::<i64>().unwrap_or(i64::MAX);
        self.emit(digits, Form::Word);
        if digits.len() == 4 && (1900..2100).contains(&value) {
            self.analysis.says_when = true;
            self.remember(Seen::Other);
            return;
        }
        if let (Seen::Month(month), 1..=31) = (self.before[0], value) {
            self.day_of_year(month, value as u32);
        }
        self.remember(Seen::Number(value));
    }

    /// 8th, 3pm, v2, utf8.
    fn with_digits(&mut self, folded: &str) {
        let number = folded.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, suffix) = folded.split_at(number);
        match suffix {
            "st" | "nd" | "rd" | "th" if !digits.is_empty() => return self.digits(digits),
            "am" | "pm" | "h" if !digits.is_empty() => self.analysis.says_when = true,
            _ => {}
        }
        self.analysis.says_number |= !digits.is_empty();
        self.emit(folded, Form::Whole);
        let version = folded.strip_prefix('v').unwrap_or("");
        if !version.is_empty() && version.bytes().all(|b| b.is_ascii_digit()) {
            self.emit(version, Form::Word);
        }
        self.remember(Seen::Other);
    }

    fn remember(&mut self, seen: Seen) {
        self.before = [seen, self.before[0]];
    }
}

/// At most so many bytes, on a character boundary.
fn cut(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes {
        return text;
    }
    let mut end = bytes;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Appends lower case without the accents of Latin and Greek letters.
fn fold(text: &str, into: &mut String) {
    if text.is_ascii() {
        let start = into.len();
        into.push_str(text);
        into[start..].make_ascii_lowercase();
        return;
    }
    for c in text.chars().flat_map(char::to_lowercase) {
        match script::plain_letters(c) {
            Some(plain) => into.push_str(plain),
            None if script::folds_accents(c) => {
                into.extend(
                    std::iter::once(c)
                        .nfd()
                        .filter(|c| !('\u{300}'..='\u{36f}').contains(c)),
                );
            }
            // What a Latin base left behind, such as the dot of a lower-cased Turkish I.
            None if ('\u{300}'..='\u{36f}').contains(&c) && into.ends_with(script::folds_accents) => {}
            None => into.push(c),
        }
    }
}

/// The terms of the day on which something was said: day, month, year, weekday.
pub fn date_terms(day: Day, sink: &mut dyn FnMut(&str, Form)) {
    let (year, month, of_month) = day.date();
    let mut term = String::new();
    calendar::day_term(month, of_month, &mut term);
    sink(&term, Form::Day);
    // Through the reader, so that they are the terms that a query gives.
    let words = format!(
        "{} {year} {}",
        calendar::month_name(month),
        calendar::weekday_name(day.weekday())
    );
    analyze(&words, &Context::said_on(None), &Limits::DOCUMENT, sink);
}
