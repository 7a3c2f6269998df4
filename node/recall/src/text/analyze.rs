//! The reader itself: one pass over the characters, which cuts the text into chunks and hands each to its reader.

use std::cell::RefCell;

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization;

use super::calendar::{self, Day, Grain};
use super::script::{self, Class, Family};
use super::words;

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
    pub const DOCUMENT: Self = Self { terms: 65_536, term_bytes: 128 };
    /// For what is asked: a query may be a pasted page, but its first words must be enough.
    pub const QUERY: Self = Self { terms: 96, term_bytes: 128 };
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
        Self { said_on: day, asks: false }
    }

    /// For a query.
    pub const fn query() -> Self {
        Self { said_on: None, asks: true }
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
/// Stems remembered. English text repeats its words; a hit costs a comparison instead of a stemmer run.
const STEM_CACHE: usize = 2_048;

struct Buffers {
    normal: String,
    lower: String,
    folded: String,
    term: String,
    stemmer: Stemmer,
    stems: Vec<(String, String)>,
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::new(Buffers {
        normal: String::new(),
        lower: String::new(),
        folded: String::new(),
        term: String::new(),
        stemmer: Stemmer::create(Algorithm::English),
        stems: vec![(String::new(), String::new()); STEM_CACHE],
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

    /// don't, Caroline's, O'Brien.
    fn with_apostrophe(&mut self, body: &str) {
        let is_apostrophe = |c: char| script::class(c) == Class::Apostrophe;
        let Some(at) = body.rfind(is_apostrophe) else { return self.word(body) };
        let (stem, suffix) = (&body[..at], body[at..].trim_start_matches(is_apostrophe));
        let suffix = cut(suffix, 8).to_lowercase();
        match suffix.as_str() {
            "t" if stem.ends_with(['n', 'N']) => {
                let verb = &stem[..stem.len() - 1];
                if !verb.contains(is_apostrophe) {
                    // can't, won't: what is left of the verb is no word.
                    if !matches!(cut(verb, 8).to_lowercase().as_str(), "ca" | "wo" | "sha") {
                        self.word(verb);
                    }
                }
                self.word("not");
            }
            "s" | "m" | "re" | "ve" | "ll" | "d" => match stem.contains(is_apostrophe) {
                true => self.apart(stem),
                false => self.word(stem),
            },
            _ => self.apart(body),
        }
    }

    /// Joined by apostrophes that mean nothing: whole without them, and in parts.
    fn apart(&mut self, body: &str) {
        let mut whole = String::new();
        for part in body.split(|c| script::class(c) == Class::Apostrophe).filter(|part| !part.is_empty()) {
            if whole.len() < self.limits.term_bytes {
                fold(cut(part, self.limits.term_bytes), &mut whole);
            }
            if part.chars().nth(1).is_some() {
                self.word(part);
            }
        }
        self.emit(&whole, Form::Whole);
    }

    /// Identifiers, paths, versions, addresses, compounds: whole, and in parts.
    fn joined(&mut self, body: &str) {
        if self.iso_date(body) {
            return;
        }
        let is_joiner = |c: char| script::class(c) == Class::Joiner;
        if self.version(body) {
            return;
        }
        self.whole(body);
        if body.contains(['/', '\\']) {
            for segment in body.split(['/', '\\']) {
                if segment.trim_matches(is_joiner).contains(is_joiner) {
                    self.whole(segment.trim_matches(is_joiner));
                }
            }
        }
        for part in body.split(is_joiner).filter(|part| !part.is_empty()) {
            if self.full() {
                return;
            }
            match part.contains(|c| script::class(c) == Class::Apostrophe) {
                true => self.with_apostrophe(part.trim_matches(|c| script::class(c) == Class::Apostrophe)),
                false => self.word(part),
            }
        }
    }

    /// Snake, kebab and camel case are one spelling: the whole is written without what joins it. Elsewhere the joiners
    /// carry meaning and stay.
    fn whole(&mut self, text: &str) {
        let is_soft = |c: char| matches!(c, '_' | '-' | '\u{2010}' | '\u{2011}');
        let text = cut(text, self.limits.term_bytes);
        let all_soft = text.chars().all(|c| script::class(c) != Class::Joiner || is_soft(c));
        let initials = text.split('.').all(|part| part.chars().count() == 1);
        let mut whole = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                c if (all_soft && is_soft(c)) || (initials && c == '.') => {}
                '\\' => whole.push('/'),
                c if script::class(c) == Class::Apostrophe => {}
                c => whole.push(c),
            }
        }
        let mut folded = String::with_capacity(whole.len());
        fold(&whole, &mut folded);
        self.emit(&folded, Form::Whole);
    }

    /// 3.10.2: the whole and every beginning, so that "3.10" finds it and "10" alone does not.
    fn version(&mut self, body: &str) -> bool {
        let numbers = body.strip_prefix(['v', 'V']).unwrap_or(body);
        let plain = numbers.len() <= 40
            && numbers.contains(['.', ':'])
            && numbers.split(['.', ':']).all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
        if !plain {
            return false;
        }
        self.analysis.says_when |= numbers.contains(':');
        self.analysis.says_number = true;
        for (at, _) in numbers.match_indices('.').skip(1) {
            self.emit(&numbers[..at], Form::Whole);
        }
        self.emit(numbers, Form::Whole);
        self.remember(Seen::Other);
        true
    }

    fn iso_date(&mut self, body: &str) -> bool {
        // A time may follow: 2023-05-08T12:00.
        let date = body.get(..10).unwrap_or("");
        let rest = body.get(10..).unwrap_or("");
        if !(rest.is_empty() || rest.starts_with(['T', 't'])) || date.len() != 10 {
            return false;
        }
        let mut fields = date.split('-').map(|field| (field.len(), field.parse::<i64>().ok()));
        let (Some((4, Some(year))), Some((2, Some(month))), Some((2, Some(day))), None) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            return false;
        };
        if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return false;
        }
        self.analysis.says_when = true;
        self.emit(date, Form::Whole);
        self.date(Day::of_date(year, month as u32, day as u32), Grain::Day);
        self.remember(Seen::Other);
        true
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
        self.analysis.negated |= words::is_negation(folded);
        self.time_word(folded);
        if words::is_stop(folded) {
            return;
        }
        if let Some(value) = words::number(folded) {
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
        if folded.len() < 3 || !folded.bytes().all(|b| b.is_ascii_lowercase()) {
            self.emit(folded, Form::Word);
            return true;
        }
        let slot = folded.bytes().fold(5_381_usize, |hash, b| hash.wrapping_mul(33) ^ usize::from(b)) % STEM_CACHE;
        let mut entry = std::mem::take(&mut self.buffers.stems[slot]);
        if entry.0 != folded {
            let base = words::regular(folded).unwrap_or(folded);
            let stem = self.buffers.stemmer.stem(base);
            entry.0.clear();
            entry.0.push_str(folded);
            entry.1.clear();
            entry.1.push_str(&stem);
        }
        self.emit(&entry.1, Form::Word);
        let same = entry.0 == entry.1;
        self.buffers.stems[slot] = entry;
        same
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

    fn day_of_year(&mut self, month: u32, day: u32) {
        self.analysis.says_when = true;
        let mut term = std::mem::take(&mut self.buffers.term);
        calendar::day_term(month, day, &mut term);
        self.emit(&term, Form::Day);
        self.buffers.term = term;
    }

    fn date(&mut self, day: Day, grain: Grain) {
        let (year, month, of_month) = day.date();
        if grain == Grain::Day {
            self.day_of_year(month, of_month);
        }
        if grain >= Grain::Month {
            self.stem(calendar::month_name(month));
        }
        self.emit(&year.to_string(), Form::Word);
    }

    fn remember(&mut self, seen: Seen) {
        self.before = [seen, self.before[0]];
    }

    /// Understands words about time, by the two words before.
    fn time_word(&mut self, word: &str) {
        let [near, far] = self.before;
        let seen = match word {
            "last" | "past" | "previous" => Seen::Past,
            "next" | "coming" | "upcoming" => Seen::Coming,
            "this" => Seen::Present,
            "a" | "an" => Seen::Number(1),
            "couple" => Seen::Number(2),
            "few" => Seen::Number(3),
            "day" | "days" => Seen::Days(1),
            "week" | "weeks" | "weekend" | "weekends" => Seen::Days(7),
            "month" | "months" => Seen::Months(1),
            "year" | "years" => Seen::Months(12),
            "what" | "which" => Seen::What,
            "how" => Seen::How,
            // Between a day and its month, and in "a couple of years ago".
            "of" | "the" => return,
            _ => match (words::number(word), calendar::month_of(word)) {
                (Some(number), _) => Seen::Number(i64::from(number)),
                (None, Some(month)) => Seen::Month(month),
                (None, None) => Seen::Other,
            },
        };
        self.analysis.asks_when |= word == "when"
            || (near == Seen::What && (matches!(seen, Seen::Days(_) | Seen::Months(_)) || matches!(word, "date" | "time")))
            || (near == Seen::How && matches!(word, "long" | "soon" | "recently"));
        self.analysis.asks_number |= near == Seen::How && matches!(word, "many" | "much" | "old" | "often" | "tall" | "far");
        let relative = match (word, seen, near) {
            ("yesterday", ..) => Some((-1, 0, Grain::Day)),
            ("today" | "tonight", ..) => Some((0, 0, Grain::Day)),
            ("tomorrow", ..) => Some((1, 0, Grain::Day)),
            ("ago", ..) => match (near, far) {
                (Seen::Days(days), Seen::Number(count)) => {
                    Some((-days * count.min(4_000), 0, if days == 1 { Grain::Day } else { Grain::Month }))
                }
                (Seen::Months(months), Seen::Number(count)) => {
                    Some((0, -months * count.min(1_000), if months == 1 { Grain::Month } else { Grain::Year }))
                }
                _ => None,
            },
            (_, Seen::Days(days), Seen::Past) => Some((-days, 0, Grain::Month)),
            (_, Seen::Days(days), Seen::Coming) => Some((days, 0, Grain::Month)),
            (_, Seen::Days(_), Seen::Present) => Some((0, 0, Grain::Month)),
            (_, Seen::Months(months), Seen::Past) => Some((0, -months, month_or_year(months))),
            (_, Seen::Months(months), Seen::Coming) => Some((0, months, month_or_year(months))),
            (_, Seen::Months(months), Seen::Present) => Some((0, 0, month_or_year(months))),
            _ => None,
        };
        let weekday = calendar::weekday_of(word);
        self.analysis.says_when |= relative.is_some()
            || weekday.is_some()
            || matches!(word, "ago" | "since" | "recently" | "night" | "morning" | "evening" | "afternoon" | "weekend")
            || matches!((seen, near), (Seen::Days(_) | Seen::Months(_), Seen::Number(_)))
            || (matches!(seen, Seen::Month(_)) && !matches!(word, "may" | "march" | "mar"));
        if let Some(said_on) = self.context.said_on {
            if let Some((days, months, grain)) = relative {
                let day = if months == 0 { said_on.plus_days(days) } else { said_on.plus_months(months) };
                self.date(day, grain);
            } else if let Some(weekday) = weekday {
                self.weekday(said_on, weekday, near);
            }
        }
        if let (Seen::Month(month), Seen::Number(day @ 1..=31)) = (seen, near) {
            self.day_of_year(month, day as u32);
        }
        self.remember(seen);
    }

    /// "last Friday" and "next Friday"; a bare "Friday" may be either and stays a word.
    fn weekday(&mut self, said_on: Day, weekday: i64, near: Seen) {
        let ahead = (weekday - said_on.weekday()).rem_euclid(7);
        match near {
            Seen::Past => self.date(said_on.plus_days(if ahead == 0 { -7 } else { ahead - 7 }), Grain::Day),
            Seen::Coming => self.date(said_on.plus_days(if ahead == 0 { 7 } else { ahead }), Grain::Day),
            _ => {}
        }
    }
}

const fn month_or_year(months: i64) -> Grain {
    if months == 1 { Grain::Month } else { Grain::Year }
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
                into.extend(std::iter::once(c).nfd().filter(|c| !('\u{300}'..='\u{36f}').contains(c)));
            }
            // What a Latin base left behind, such as the dot of a lower-cased Turkish I.
            None if ('\u{300}'..='\u{36f}').contains(&c) && into.ends_with(script::folds_accents) => {}
            None => into.push(c),
        }
    }
}

/// getUserName -> get, User, Name; HTTPServer -> HTTP, Server; one part when there is nothing to cut.
fn camel_parts(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut previous: Option<char> = None;
        let mut chars = rest.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let next_is_lower = chars.peek().is_some_and(|(_, next)| next.is_lowercase());
            let begins = previous.is_some_and(|p| c.is_uppercase() && (p.is_lowercase() || (p.is_uppercase() && next_is_lower)));
            if begins {
                let (part, tail) = rest.split_at(at);
                rest = tail;
                return Some(part);
            }
            previous = Some(c);
        }
        Some(std::mem::take(&mut rest))
    })
}

/// The terms of the day on which something was said: day, month, year, weekday.
pub fn date_terms(day: Day, sink: &mut dyn FnMut(&str, Form)) {
    let (year, month, of_month) = day.date();
    let mut term = String::new();
    calendar::day_term(month, of_month, &mut term);
    sink(&term, Form::Day);
    // Through the reader, so that they are the terms that a query gives.
    let words = format!("{} {year} {}", calendar::month_name(month), calendar::weekday_name(day.weekday()));
    analyze(&words, &Context::said_on(None), &Limits::DOCUMENT, sink);
}
