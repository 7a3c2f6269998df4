//! Our entry in a client's file: where it stands and what it says.

use serde_json::Value;

use super::malformed::Malformed;
use super::target::{ANY_KEY, PROMPT_ID};
use super::{jsonc, toml};

/// The name of our entry in every client.
pub(crate) const NAME: &str = "waggle";

/// Where an entry stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Below these names of a JSON file, under [`NAME`].
    Json(&'static [&'static str]),
    /// `[outer.waggle]` of a TOML file.
    Toml(&'static str),
}

/// An entry, as it is or as it shall be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) place: Place,
    pub(crate) value: Value,
    /// An object with an `id` in a list at the top of the file that belongs to the entry.
    pub(crate) item: Option<Item>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Item {
    pub(crate) list: &'static str,
    pub(crate) value: Value,
}

impl Place {
    fn path(&self) -> Vec<&'static str> {
        match self {
            Self::Json(parents) => parents.iter().copied().chain([NAME]).collect(),
            Self::Toml(outer) => vec![outer, NAME],
        }
    }

    /// What stands there now.
    pub(crate) fn read(&self, text: &str) -> Result<Option<Value>, Malformed> {
        match self {
            Self::Json(_) => jsonc::get(text, &self.path()),
            Self::Toml(outer) => toml::get(text, outer, NAME),
        }
    }

    pub(crate) fn write(&self, text: &str, value: &Value) -> Result<String, Malformed> {
        match self {
            Self::Json(_) => jsonc::set(text, &self.path(), value),
            Self::Toml(outer) => toml::set(text, outer, NAME, value.as_object().unwrap_or(&serde_json::Map::new())),
        }
    }

    /// Without the entry. The objects round it go too where `keep` says that they were made for it.
    fn remove(&self, text: &str, made: &dyn Fn(&[&str]) -> bool) -> Result<String, Malformed> {
        let path = self.path();
        let mut text = match self {
            Self::Json(_) => jsonc::remove(text, &path)?,
            Self::Toml(outer) => return toml::remove(text, outer, NAME),
        };
        for depth in (1..path.len()).rev() {
            let outer = path.get(..depth).unwrap_or_default();
            let empty =
                jsonc::get(&text, outer)?.is_some_and(|value| value.as_object().is_some_and(|all| all.is_empty()));
            if empty && made(outer) {
                text = jsonc::remove(&text, outer)?;
            }
        }
        Ok(text)
    }
}

impl Entry {
    /// The text with the entry in it.
    pub(crate) fn write(&self, text: &str) -> Result<String, Malformed> {
        let text = self.place.write(text, &self.value)?;
        match &self.item {
            None => Ok(text),
            Some(item) => jsonc::set_item(&text, item.list, PROMPT_ID, &item.value),
        }
    }

    /// The text without the entry, whatever it says; `before` is how the file was before we first wrote it, if known.
    pub(crate) fn remove(&self, text: &str, before: Option<&str>) -> Result<String, Malformed> {
        let made = |path: &[&str]| before.is_none_or(|before| matches!(jsonc::get(before, path), Ok(None)));
        let mut text = self.place.remove(text, &made)?;
        if let Some(item) = &self.item {
            text = jsonc::remove_item(&text, item.list, PROMPT_ID)?;
            let empty = jsonc::get(&text, &[item.list])?.is_some_and(|all| all.as_array().is_some_and(Vec::is_empty));
            if empty && made(&[item.list]) {
                text = jsonc::remove(&text, &[item.list])?;
            }
        }
        Ok(text)
    }

    /// Whether the file says what the entry says; fields that somebody added to it do not matter.
    pub(crate) fn holds_in(&self, text: &str) -> Result<bool, Malformed> {
        let entry = self
            .place
            .read(text)?
            .is_some_and(|found| contains(&found, &self.value));
        let item = match &self.item {
            None => true,
            Some(item) => {
                let id = &item.value["id"];
                let list = jsonc::get(text, &[item.list])?.unwrap_or(Value::Null);
                list.as_array()
                    .is_some_and(|all| all.iter().any(|one| &one["id"] == id))
            }
        };
        Ok(entry && item)
    }
}

/// Every field of `wanted` is in `found` with its value.
fn contains(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => wanted
            .iter()
            .all(|(name, inner)| found.get(name).is_some_and(|there| contains(there, inner))),
        (Value::String(found), Value::String(wanted)) => match wanted.split_once(ANY_KEY) {
            Some((head, _)) => found.strip_prefix(head).is_some_and(|key| key.starts_with("wg_")),
            None => found == wanted,
        },
        _ => found == wanted,
    }
}
