//! What joiners and apostrophes hold together: identifiers, paths, versions, ISO dates, compounds, contractions.

use super::super::calendar::{Day, Grain};
use super::super::script::{self, Class};
use super::{Form, Reader, Seen, cut, fold};

impl Reader<'_> {
    /// don't, Caroline's, O'Brien.
    pub(super) fn with_apostrophe(&mut self, body: &str) {
        let is_apostrophe = |c: char| script::class(c) == Class::Apostrophe;
        let Some(at) = body.rfind(is_apostrophe) else {
            return self.word(body);
        };
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
        for part in body
            .split(|c| script::class(c) == Class::Apostrophe)
            .filter(|part| !part.is_empty())
        {
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
    pub(super) fn joined(&mut self, body: &str) {
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
            && numbers
                .split(['.', ':'])
                .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
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
}

/// getUserName -> get, User, Name; HTTPServer -> HTTP, Server; one part when there is nothing to cut.
pub(super) fn camel_parts(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut previous: Option<char> = None;
        let mut chars = rest.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let next_is_lower = chars.peek().is_some_and(|(_, next)| next.is_lowercase());
            let begins =
                previous.is_some_and(|p| c.is_uppercase() && (p.is_lowercase() || (p.is_uppercase() && next_is_lower)));
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
