//! JSON as the files have it: canonical text, and the pieces that records are made of.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{DeserializeOwned, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use waggle_memory::id::{EvidenceId, LinkId, MemoryId, MessageId, PairId, TurnId};
use waggle_memory::kind::{Confidence, Kind, Modality, Origin, Relationship, Role};
use waggle_memory::memory::ChangeReason;
use waggle_memory::statement::Fingerprint;
use waggle_memory::time::Millis;

/// Canonical JSON: keys sorted, no blanks, UTF-8 not escaped.
pub(crate) fn canonical(value: &Value) -> String {
    sorted(value).to_string()
}

/// The same value with the keys of every object sorted by their bytes.
pub(crate) fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            Value::Object(
                members
                    .into_iter()
                    .map(|(key, value)| (key.clone(), sorted(value)))
                    .collect(),
            )
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

/// Nesting of a value: 0 for a plain one.
pub(crate) fn depth(value: &Value) -> usize {
    match value {
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Reads one value; what is wrong is said without any text of the value.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|error| why(&error))
}

/// serde quotes what it found. Messages of a file's reader must not: what was found may be a secret.
pub(crate) fn why(error: &serde_json::Error) -> String {
    use serde_json::error::Category;
    match error.classify() {
        Category::Io | Category::Eof => return "the JSON ends too early".to_owned(),
        Category::Syntax => return format!("not JSON, column {}", error.column()),
        Category::Data => {}
    }
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text);
    let expected = |text: &str| {
        let what = text
            .rsplit_once(", expected ")
            .map_or("something else", |(_, what)| what);
        format!("expected {what}, column {}", error.column())
    };
    if text.starts_with("invalid ") {
        expected(text)
    } else if let Some(rest) = text.strip_prefix("unknown field `") {
        let name: String = rest.chars().take_while(|c| *c != '`').take(40).collect();
        format!("unknown field '{}', column {}", name.escape_debug(), error.column())
    } else if text.starts_with("missing field") || text.starts_with("duplicate field") || text.starts_with(OURS) {
        format!("{}, column {}", text.strip_prefix(OURS).unwrap_or(text), error.column())
    } else {
        expected(text)
    }
}

/// Marks a message that this crate made and that quotes nothing.
const OURS: &str = "\u{1}";

/// A value with one text form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text<T>(pub(crate) T);

/// What [`Text`] can hold.
pub(crate) trait Word: Sized {
    /// What is expected, for people.
    fn expected() -> String;
    fn read(text: &str) -> Option<Self>;
    fn show(&self) -> String;
}

impl<T: Word> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.0.show())
    }
}

impl<'de, T: Word> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader<T>(PhantomData<T>);
        impl<T: Word> Visitor<'_> for Reader<T> {
            type Value = Text<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&T::expected())
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Text<T>, E> {
                T::read(text)
                    .map(Text)
                    .ok_or_else(|| E::custom(format!("{OURS}expected {}", T::expected())))
            }
        }
        from.deserialize_str(Reader(PhantomData))
    }
}

macro_rules! ids {
    ($($id:ident)*) => {$(
        impl Word for $id {
            fn expected() -> String {
                "a UUID".to_owned()
            }
            fn read(text: &str) -> Option<Self> {
                Self::from_str(text).ok()
            }
            fn show(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

ids!(EvidenceId LinkId MemoryId MessageId PairId TurnId);

macro_rules! words {
    ($($word:ident)*) => {$(
        impl Word for $word {
            fn expected() -> String {
                let words: Vec<&str> = Self::ALL.iter().map(|word| word.word()).collect();
                format!("one of {}", words.join(", "))
            }
            fn read(text: &str) -> Option<Self> {
                Self::from_str(text).ok()
            }
            fn show(&self) -> String {
                self.word().to_owned()
            }
        }
    )*};
}

words!(Confidence Kind Modality Origin Relationship Role);

impl Word for ChangeReason {
    fn expected() -> String {
        let words: Vec<&str> = (1..=u8::MAX).filter_map(Self::from_number).map(Self::word).collect();
        format!("one of {}", words.join(", "))
    }

    fn read(text: &str) -> Option<Self> {
        (1..=u8::MAX)
            .filter_map(Self::from_number)
            .find(|reason| reason.word() == text)
    }

    fn show(&self) -> String {
        self.word().to_owned()
    }
}

impl Word for Fingerprint {
    fn expected() -> String {
        "16 hexadecimal digits".to_owned()
    }

    fn read(text: &str) -> Option<Self> {
        let digits = text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
        digits.then(|| u64::from_str_radix(text, 16).ok()).flatten().map(Self)
    }

    fn show(&self) -> String {
        format!("{:016x}", self.0)
    }
}

impl Word for Millis {
    fn expected() -> String {
        "a time such as 2026-01-31T12:00:00.000Z".to_owned()
    }

    /// RFC 3339. Times outside of the calendar's range are milliseconds since 1970, as they are shown.
    fn read(text: &str) -> Option<Self> {
        if let Some(millis) = text.strip_suffix("ms") {
            return millis.parse().ok().map(Self);
        }
        let at: jiff::Timestamp = text.parse().ok()?;
        Some(Self(at.as_millisecond()))
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

/// Fails with a message that quotes nothing.
pub(crate) fn refuse<E: serde::de::Error>(what: &str) -> E {
    E::custom(format!("{OURS}{what}"))
}

/// Metadata: an object in the file, canonical text in the memory.
pub(crate) mod metadata {
    use super::{Deserialize, Deserializer, Serialize, Serializer, Value, canonical, refuse};

    pub(crate) fn serialize<S: Serializer>(text: &str, to: S) -> Result<S::Ok, S::Error> {
        if text.is_empty() {
            return to.serialize_none();
        }
        let value: Value = serde_json::from_str(text).map_err(|_| serde::ser::Error::custom("metadata is not JSON"))?;
        value.serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
        match Option::<Value>::deserialize(from)? {
            None => Ok(String::new()),
            Some(value @ Value::Object(_)) => Ok(canonical(&value)),
            Some(_) => Err(refuse("expected metadata to be an object")),
        }
    }
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads hexadecimal digits of exactly `N` bytes.
pub(crate) fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}
