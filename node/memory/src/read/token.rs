//! Text to tokens: words, numbers, paths, URLs, flags, quoted text, punctuation; each with its bytes in the text.
//!
//! One pass, linear whatever the text. Contractions are written out here, so several words may share one place.

use crate::read::list::{WordList, list};
use unicode_normalization::UnicodeNormalization;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Word,
    /// Starts with a digit, or with a sign or currency before one.
    Number,
    Path,
    Url,
    Flag,
    /// In back ticks or double quotation marks; `text` is without them.
    Quoted,
    Punct,
}

/// A token.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    /// NFC, in its own case.
    pub(crate) text: String,
    /// Lower case.
    pub(crate) lower: String,
    pub(crate) kind: TokenKind,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// White space stands before it.
    pub(crate) spaced: bool,
}

impl Token {
    pub(crate) fn is(&self, punct: &str) -> bool {
        self.kind == TokenKind::Punct && self.text == punct
    }
}

/// Longest quoted text, and longest number, in bytes; longer ones are read as plain words.
const QUOTED_MAX: usize = 200;

const EXTENSIONS: WordList = WordList::new(
    "rs py ts tsx js jsx go java kt rb php c h cpp hpp cs swift toml yaml yml json md txt html css \
     scss sql sh bash lock cfg ini env xml csv proto tf ipynb vue svelte gradle conf log pdf png svg",
);

struct Lexer<'a> {
    text: &'a str,
    tokens: Vec<Token>,
}

/// The tokens of `text`.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let mut lexer = Lexer {
        text,
        tokens: Vec::new(),
    };
    let mut position = 0;
    while let Some(rest) = text.get(position..).filter(|rest| !rest.is_empty()) {
        let blank: usize = rest.chars().take_while(|c| c.is_whitespace()).map(char::len_utf8).sum();
        if blank > 0 {
            position += blank;
            continue;
        }
        if let Some(end) = quoted_end(text, position) {
            let mark = rest.chars().next().map_or(1, char::len_utf8);
            let close = text
                .get(..end)
                .and_then(|t| t.chars().next_back())
                .map_or(1, char::len_utf8);
            let spaced = lexer.spaced(position);
            lexer.push(TokenKind::Quoted, position + mark, end - close, spaced);
            if let Some(last) = lexer.tokens.last_mut() {
                (last.start, last.end) = (position, end);
            }
            position = end;
            continue;
        }
        let mut length = 0;
        for c in rest.chars() {
            if c.is_whitespace() || (length > 0 && matches!(c, '`' | '"' | '“')) {
                break;
            }
            length += c.len_utf8();
        }
        lexer.chunk(position, position + length);
        position += length;
    }
    lexer.tokens
}

/// Where the quoted text that starts at `position` ends, if one does.
fn quoted_end(text: &str, position: usize) -> Option<usize> {
    let rest = text.get(position..)?;
    let open = rest.chars().next()?;
    let close = match open {
        '`' | '"' => open,
        '“' => '”',
        _ => return None,
    };
    let mut at = position + open.len_utf8();
    for c in rest.chars().skip(1).take(QUOTED_MAX) {
        at += c.len_utf8();
        if c == close {
            return (at - position > open.len_utf8() + close.len_utf8()).then_some(at);
        }
        if c == '\n' {
            return None;
        }
    }
    None
}

impl Lexer<'_> {
    fn spaced(&self, start: usize) -> bool {
        self.text
            .get(..start)
            .and_then(|t| t.chars().next_back())
            .is_none_or(char::is_whitespace)
    }

    fn push(&mut self, kind: TokenKind, start: usize, end: usize, spaced: bool) {
        let Some(raw) = self.text.get(start..end).filter(|raw| !raw.is_empty()) else {
            return;
        };
        let text: String = if raw.is_ascii() {
            raw.to_owned()
        } else {
            raw.nfc().collect()
        };
        let lower = text.to_lowercase();
        self.tokens.push(Token {
            text,
            lower,
            kind,
            start,
            end,
            spaced,
        });
    }

    fn push_as(&mut self, words: &[&str], start: usize, end: usize) {
        let spaced = self.spaced(start);
        let capital = self
            .text
            .get(start..end)
            .and_then(|t| t.chars().next())
            .is_some_and(char::is_uppercase);
        for (i, word) in words.iter().enumerate() {
            let mut text = (*word).to_owned();
            if capital && i == 0 {
                text = text
                    .chars()
                    .next()
                    .map(|c| c.to_uppercase().to_string())
                    .unwrap_or_default()
                    + text.get(1..).unwrap_or_default();
            }
            let spaced = spaced && i == 0;
            self.tokens.push(Token {
                text,
                lower: (*word).to_owned(),
                kind: TokenKind::Word,
                start,
                end,
                spaced,
            });
        }
    }

    /// One run of characters without white space.
    fn chunk(&mut self, start: usize, end: usize) {
        let (mut start, mut end) = (start, end);
        while let Some(c) = self.text.get(start..end).and_then(|t| t.chars().next()) {
            let next = self.text.get(start + c.len_utf8()..end).and_then(|t| t.chars().next());
            let opens = match c {
                '(' | '[' | '{' | '"' | '\'' | '“' | '‘' | '«' | '*' | '>' | '`' => true,
                '.' | '…' => next.is_none_or(|n| !n.is_alphanumeric() && n != '/' && n != '.'),
                '-' => next.is_none_or(|n| !n.is_alphanumeric() && n != '-'),
                '–' | '—' | ',' | ';' | ':' | '!' | '?' | ')' | ']' | '}' | '”' | '’' | '=' | '+' | '|' => true,
                _ => false,
            };
            if !opens {
                break;
            }
            let dash = matches!(c, '-' | '–' | '—');
            let at = start;
            start += c.len_utf8();
            let spaced = self.spaced(at);
            self.push(TokenKind::Punct, at, start, spaced);
            if let Some(last) = self.tokens.last_mut()
                && dash
            {
                last.text = "—".to_owned();
                last.lower.clone_from(&last.text);
            }
        }
        let mut trailing = Vec::new();
        while let Some(c) = self.text.get(start..end).and_then(|t| t.chars().next_back()) {
            if !matches!(
                c,
                '.' | ','
                    | ';'
                    | ':'
                    | '!'
                    | '?'
                    | ')'
                    | ']'
                    | '}'
                    | '"'
                    | '\''
                    | '”'
                    | '’'
                    | '»'
                    | '…'
                    | '*'
                    | '—'
                    | '–'
                    | '。'
                    | '、'
                    | '！'
                    | '？'
            ) {
                break;
            }
            // "c++" style names keep nothing here; "e.g." and "U.S." keep their last point.
            let core = self.text.get(start..end).unwrap_or_default();
            if c == '.' && core.len() <= 8 && core.trim_end_matches('.').contains('.') && is_dotted_letters(core) {
                break;
            }
            end -= c.len_utf8();
            trailing.push((end, c));
        }
        if start < end {
            self.core(start, end);
        }
        for (at, c) in trailing.into_iter().rev() {
            self.push(TokenKind::Punct, at, at + c.len_utf8(), false);
            if let Some(last) = self.tokens.last_mut()
                && matches!(c, '–' | '—')
            {
                last.text = "—".to_owned();
            }
        }
    }

    fn core(&mut self, start: usize, end: usize) {
        let Some(raw) = self.text.get(start..end) else { return };
        let spaced = self.spaced(start);
        if raw.contains("://") || raw.starts_with("www.") || (raw.contains('@') && raw.contains('.') && raw.len() < 100)
        {
            return self.push(TokenKind::Url, start, end, spaced);
        }
        if raw.starts_with('-') && raw.chars().any(char::is_alphabetic) {
            return self.push(TokenKind::Flag, start, end, spaced);
        }
        if let Some(at) = raw.find(['—', '–']) {
            let width = raw.get(at..).and_then(|r| r.chars().next()).map_or(1, char::len_utf8);
            if at > 0 {
                self.core(start, start + at);
            }
            self.push(TokenKind::Punct, start + at, start + at + width, false);
            if let Some(last) = self.tokens.last_mut() {
                last.text = "—".to_owned();
            }
            return self.dashes(start + at + width, end);
        }
        self.plain(start, end);
    }

    /// What follows the first dash of a run; a loop, because a text may be nothing but dashes.
    fn dashes(&mut self, start: usize, end: usize) {
        let Some(raw) = self.text.get(start..end) else { return };
        let mut at = start;
        for piece in raw.split(['—', '–']) {
            if !piece.is_empty() {
                self.plain(at, at + piece.len());
            }
            at += piece.len();
            if at < end {
                self.push(TokenKind::Punct, at, at + 3, false);
                if let Some(last) = self.tokens.last_mut() {
                    last.text = "—".to_owned();
                }
                at += 3;
            }
        }
    }

    fn plain(&mut self, start: usize, end: usize) {
        let Some(raw) = self.text.get(start..end) else { return };
        let spaced = self.spaced(start);
        if is_path(raw) {
            return self.push(TokenKind::Path, start, end, spaced);
        }
        if raw.len() <= QUOTED_MAX && starts_number(raw) {
            if let Some((number, word)) = raw.split_once('-')
                && word.starts_with(char::is_alphabetic)
                && number.chars().all(|c| c.is_ascii_digit() || c == '.')
                && !matches!(word, "hour" | "Hour")
            {
                self.push(TokenKind::Number, start, start + number.len(), spaced);
                return self.push(TokenKind::Word, start + number.len() + 1, end, false);
            }
            return self.push(TokenKind::Number, start, end, spaced);
        }
        if raw.contains('/') && raw.len() <= QUOTED_MAX {
            let mut at = start;
            for piece in raw.split('/') {
                if at > start {
                    self.push(TokenKind::Punct, at - 1, at, false);
                }
                self.word(at, at + piece.len());
                at += piece.len() + 1;
            }
            return;
        }
        self.word(start, end);
    }

    fn word(&mut self, start: usize, end: usize) {
        let Some(raw) = self.text.get(start..end) else { return };
        if starts_number(raw) && raw.len() <= QUOTED_MAX {
            let spaced = self.spaced(start);
            return self.push(TokenKind::Number, start, end, spaced);
        }
        if raw.len() <= 40 && (raw.contains(['\'', '’']) || raw.eq_ignore_ascii_case("cannot")) {
            let lower = raw.replace('’', "'").to_lowercase();
            let (stem, expanded): (&str, &[&str]) = match lower.as_str() {
                "can't" | "cannot" => ("", &["can", "not"]),
                "won't" => ("", &["will", "not"]),
                "shan't" => ("", &["shall", "not"]),
                "ain't" => ("", &["is", "not"]),
                "let's" => ("", &["let", "us"]),
                "i'm" => ("", &["i", "am"]),
                "i'd" => ("", &["i", "would"]),
                other => {
                    let at = other.rfind('\'').unwrap_or(0);
                    let (stem, ending) = other.split_at(at);
                    match ending {
                        "'t" if stem.ends_with('n') => (stem.strip_suffix('n').unwrap_or(stem), &["not"] as &[&str]),
                        "'re" => (stem, &["are"]),
                        "'ve" => (stem, &["have"]),
                        "'ll" => (stem, &["will"]),
                        "'d" => (stem, &["would"]),
                        "'s" if super::words::is_in(
                            list!("it he she that this there what who where when how here everything nothing"),
                            stem,
                        ) =>
                        {
                            (stem, &["is"])
                        }
                        "'s" => {
                            // The possessive: the name keeps its case, the mark is a token of its own.
                            let cut = start + raw.rfind(['\'', '’']).unwrap_or(raw.len());
                            let spaced = self.spaced(start);
                            self.push(TokenKind::Word, start, cut, spaced);
                            return self.push_as(&["'s"], cut, end);
                        }
                        _ => {
                            let spaced = self.spaced(start);
                            return self.push(TokenKind::Word, start, end, spaced);
                        }
                    }
                }
            };
            if !stem.is_empty() {
                self.push_as(&[stem], start, end);
            }
            let capital_first = stem.is_empty();
            if capital_first {
                self.push_as(expanded, start, end);
            } else if let Some(first) = expanded.first() {
                self.tokens.push(Token {
                    text: (*first).to_owned(),
                    lower: (*first).to_owned(),
                    kind: TokenKind::Word,
                    start,
                    end,
                    spaced: false,
                });
            }
            return;
        }
        let spaced = self.spaced(start);
        self.push(TokenKind::Word, start, end, spaced);
    }
}

fn is_dotted_letters(core: &str) -> bool {
    core.split('.')
        .all(|part| part.chars().count() <= 1 && part.chars().all(char::is_alphabetic))
}

fn starts_number(raw: &str) -> bool {
    let bare = raw.trim_start_matches(['$', '€', '£', '¥', '+', '-', '~', '#', '<', '≥', '≤']);
    bare.starts_with(|c: char| c.is_ascii_digit())
        || (bare.starts_with('.')
            && bare
                .get(1..)
                .is_some_and(|r| r.starts_with(|c: char| c.is_ascii_digit())))
}

/// A file or directory, not "and/or" and not "requests/minute".
fn is_path(raw: &str) -> bool {
    if raw.len() > 1_000 || raw.len() < 3 {
        return false;
    }
    let rooted = ["/", "./", "../", "~/"].iter().any(|p| raw.starts_with(p))
        && raw.chars().filter(|c| c.is_alphanumeric()).count() >= 2;
    let name = raw.rsplit('/').next().unwrap_or(raw);
    let extension = name
        .rsplit_once('.')
        .filter(|(stem, _)| !stem.is_empty() || raw.len() > name.len())
        .map(|(_, e)| e);
    let known = extension.is_some_and(|e| super::words::is_in(EXTENSIONS, &e.to_lowercase()));
    if raw.contains('/') {
        return rooted
            || known
            || (raw.matches('/').count() >= 2 && raw.bytes().all(|b| b.is_ascii_graphic()) && !starts_number(raw));
    }
    known && super::words::technology(&raw.to_lowercase()).is_none() && !starts_number(raw)
}
