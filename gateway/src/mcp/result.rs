//! Answers that fit a token budget. The budget holds for the larger of text and structured form; whole items are left
//! out from the end, and a cursor says where to go on. An item that is too large by itself is cut and marked.

mod cut;

use serde_json::{Map, Value, json};

use crate::cursor::Left;
use crate::mcp::text;
use cut::{cut_longest, drop_longest_list, keep_only_id};

pub(crate) use cut::shorten;

/// Answers of tools without pages: what clients show without cutting.
pub(crate) const UNPAGED_TOKENS_MAX: usize = 5_000;

const BYTES_PER_TOKEN: usize = 4;
/// Strings shorter than this are never cut: ids, times and words.
const UNCUT_BYTES: usize = 40;
/// What `truncated`, `next_cursor` and `token_estimate` may take, without the items that a cursor names.
const TAIL_BYTES: usize = 190;
/// Text form of one item in a cursor.
pub(crate) const CURSOR_BYTES_PER_ITEM: usize = 6;
const CURSOR_BYTES_MAX: usize = waggle_config::limits::CURSOR_BYTES_MAX;

/// Where an item stands in the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    List(&'static str),
    /// A line of the section with this number.
    Section(usize),
}

/// Something that is shown whole or not at all.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) place: Place,
    pub(crate) value: Value,
    /// Entries of other lists that come and go with it.
    pub(crate) also: Vec<(&'static str, Value)>,
    /// Names it in a cursor.
    pub(crate) hash: u32,
    /// What links attach to.
    pub(crate) id: Option<[u8; 16]>,
    pub(crate) count: Count,
}

/// What of [`Left`] an item takes when it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    None,
    Node,
    Turn,
}

impl Item {
    pub(crate) fn listed(list: &'static str, value: Value, identity: &[u8]) -> Self {
        Self {
            place: Place::List(list),
            value,
            also: Vec::new(),
            hash: crate::cursor::item_hash(identity),
            id: identity.try_into().ok(),
            count: Count::None,
        }
    }
}

/// Shown once the items it needs are shown.
#[derive(Clone, Debug)]
pub(crate) struct Attached {
    pub(crate) list: &'static str,
    pub(crate) value: Value,
    pub(crate) needs: Needs,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Needs {
    Both([u8; 16], [u8; 16]),
    Either([u8; 16], [u8; 16]),
}

/// An answer before it is made to fit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    /// Always shown, in this order.
    pub(crate) head: Map<String, Value>,
    /// Lists that are shown even when they are empty; others appear with their first entry.
    pub(crate) lists: Vec<&'static str>,
    /// Titles of sections, when the answer has any.
    pub(crate) sections: Vec<String>,
    /// Most important first.
    pub(crate) items: Vec<Item>,
    pub(crate) attached: Vec<Attached>,
    /// More items exist than are here: the answer is truncated even when all of these are shown.
    pub(crate) more: bool,
    /// The state that was read; goes into the cursor.
    pub(crate) read_stamp: i64,
    /// A file that is fetched elsewhere.
    pub(crate) link: Option<Link>,
}

/// A file that a client fetches by its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) uri: String,
    pub(crate) name: String,
    pub(crate) mime_type: &'static str,
}

/// An answer of which both forms fit.
#[derive(Clone, Debug)]
pub(crate) struct Fitted {
    pub(crate) structured: Value,
    pub(crate) text: String,
    pub(crate) link: Option<Link>,
}

impl Fitted {
    /// Bytes of the larger form.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len().max(self.structured.to_string().len())
    }
}

/// Makes the cursor after showing these hashes, with so much left, at this read stamp.
pub(crate) type Seal<'a> = &'a dyn Fn(&[u32], Left, i64) -> String;

impl Answer {
    pub(crate) fn put(&mut self, key: &str, value: impl Into<Value>) {
        self.head.insert(key.to_owned(), value.into());
    }

    /// Leaves empty values out.
    pub(crate) fn put_some(&mut self, key: &str, value: impl Into<Value>) {
        let value = value.into();
        if !is_empty(&value) {
            self.head.insert(key.to_owned(), value);
        }
    }

    /// `seal` is None for tools without pages.
    pub(crate) fn fit(self, tokens: usize, seal: Option<Seal<'_>>) -> Fitted {
        let bytes_max = tokens * BYTES_PER_TOKEN;
        let all = self.items.len();
        let mut shown = self.count_fitting(bytes_max, if seal.is_some() { 40 } else { 0 }, false);
        if shown < all || self.more {
            shown = self.count_fitting(bytes_max, TAIL_BYTES, seal.is_some());
        }
        loop {
            let built = self.build(shown, shown < all || self.more, seal);
            if built.bytes() <= bytes_max {
                return built;
            }
            match shown {
                0 => return self.cut_head(bytes_max, seal),
                1 => return self.cut_first(bytes_max, seal),
                _ => shown -= 1,
            }
        }
    }

    /// How many items fit by the sum of their sizes; at least one, which is cut later if it must be.
    fn count_fitting(&self, bytes_max: usize, tail: usize, cursor: bool) -> usize {
        let empty = self.build(0, false, None);
        let mut structured = empty.structured.to_string().len() + tail;
        let mut written = empty.text.len() + tail;
        let mut cursor_bytes = 0;
        let mut known_lists: Vec<&str> = self.lists.clone();
        let mut waiting: Vec<&Attached> = self.attached.iter().collect();
        let mut ids = Vec::new();
        for (at, item) in self.items.iter().enumerate() {
            let mut add = |list: &'static str, value: &Value| {
                structured += value.to_string().len() + 1;
                written += text::bullet(list, value).len() + 3;
                if !known_lists.contains(&list) {
                    known_lists.push(list);
                    structured += list.len() + 6;
                    written += list.len() + 2;
                }
            };
            match item.place {
                Place::List(list) => add(list, &item.value),
                Place::Section(_) => add("items", &item.value),
            }
            item.also.iter().for_each(|(list, value)| add(list, value));
            ids.extend(item.id);
            waiting.retain(|attached| {
                let ready = attached.needs.met_by(&ids);
                if ready {
                    add(attached.list, &attached.value);
                }
                !ready
            });
            if cursor {
                cursor_bytes = (cursor_bytes + CURSOR_BYTES_PER_ITEM)
                    .min(bytes_max / 4)
                    .min(CURSOR_BYTES_MAX);
            }
            if structured.max(written) + cursor_bytes > bytes_max {
                return at.max(1).min(self.items.len());
            }
        }
        self.items.len()
    }

    fn build(&self, shown: usize, truncated: bool, seal: Option<Seal<'_>>) -> Fitted {
        let mut structured = self.head.clone();
        let items = self.items.get(..shown).unwrap_or(&self.items);
        if !self.sections.is_empty() {
            structured.insert("sections".into(), self.build_sections(items));
        }
        let mut lists: Vec<(&str, Vec<Value>)> = self.lists.iter().map(|list| (*list, Vec::new())).collect();
        let mut add = |list: &'static str, value: &Value| match lists.iter_mut().find(|(known, _)| *known == list) {
            Some((_, values)) => values.push(value.clone()),
            None => lists.push((list, vec![value.clone()])),
        };
        for item in items {
            if let Place::List(list) = item.place {
                add(list, &item.value);
            }
            item.also.iter().for_each(|(list, value)| add(list, value));
        }
        let ids: Vec<[u8; 16]> = items.iter().filter_map(|item| item.id).collect();
        for attached in self.attached.iter().filter(|attached| attached.needs.met_by(&ids)) {
            add(attached.list, &attached.value);
        }
        for (list, values) in lists {
            structured.insert(list.into(), values.into());
        }
        if truncated || seal.is_some() {
            structured.insert("truncated".into(), truncated.into());
        }
        if let (true, Some(seal)) = (truncated, seal) {
            let hashes: Vec<u32> = items.iter().map(|item| item.hash).collect();
            let cursor = seal(
                &hashes,
                left_in(self.items.get(shown..).unwrap_or_default()),
                self.read_stamp,
            );
            structured.insert("next_cursor".into(), cursor.into());
        }
        if seal.is_some() {
            // Its own digits count: measured with as many digits as the largest budget has.
            structured.insert("token_estimate".into(), json!(20_000));
            let measured = structured_and_text(&structured).bytes().div_ceil(BYTES_PER_TOKEN);
            structured.insert("token_estimate".into(), measured.into());
        }
        structured_and_text(&structured)
    }

    fn build_sections(&self, items: &[Item]) -> Value {
        let of = |number: usize| {
            items
                .iter()
                .filter(move |item| item.place == Place::Section(number))
                .map(|item| item.value.clone())
        };
        self.sections
            .iter()
            .enumerate()
            .map(|(number, title)| json!({"title": title, "items": of(number).collect::<Vec<_>>()}))
            .filter(|section| section["items"].as_array().is_some_and(|items| !items.is_empty()))
            .collect()
    }

    /// Only one item is left and it is too large.
    fn cut_first(mut self, bytes_max: usize, seal: Option<Seal<'_>>) -> Fitted {
        let more = self.more || self.items.len() > 1;
        loop {
            let built = self.build(1, more, seal);
            let over = built.bytes().saturating_sub(bytes_max);
            if over == 0 {
                return built;
            }
            let Some(item) = self.items.first_mut() else {
                return self.cut_head(bytes_max, seal);
            };
            // Links and conflicts go before the content does.
            let ids: Vec<[u8; 16]> = item.id.into_iter().collect();
            let link = self.attached.iter().rposition(|attached| attached.needs.met_by(&ids));
            let dropped = if let Some(at) = link {
                self.attached.remove(at);
                true
            } else {
                let fields = item.value.as_object_mut();
                fields.is_some_and(|fields| fields.shift_remove("conflicts").is_some())
            };
            if !dropped
                && !cut_longest(&mut item.value, over)
                && item.also.pop().is_none()
                && !drop_longest_list(&mut item.value)
            {
                return self.cut_head(bytes_max, seal);
            }
            if let Some(fields) = item.value.as_object_mut() {
                fields.insert("content_truncated".into(), true.into());
            }
        }
    }

    /// Last resort: shorten what is always shown.
    fn cut_head(mut self, bytes_max: usize, seal: Option<Seal<'_>>) -> Fitted {
        loop {
            let shown = self.items.len().min(1);
            let built = self.build(shown, self.more || self.items.len() > 1, seal);
            let over = built.bytes().saturating_sub(bytes_max);
            if over == 0 {
                return built;
            }
            let mut head = Value::Object(std::mem::take(&mut self.head));
            let cut = cut_longest(&mut head, over) || drop_longest_list(&mut head);
            if let Value::Object(fields) = head {
                self.head = fields;
            }
            if cut {
                self.head.insert("content_truncated".into(), true.into());
            } else if !self.items.first_mut().is_some_and(keep_only_id) {
                // An item is never left out without a cursor that brings it.
                return built;
            }
        }
    }
}

impl Needs {
    fn met_by(self, ids: &[[u8; 16]]) -> bool {
        match self {
            Self::Both(one, two) => ids.contains(&one) && ids.contains(&two),
            Self::Either(one, two) => ids.contains(&one) || ids.contains(&two),
        }
    }
}

fn left_in(items: &[Item]) -> Left {
    let count = |what: Count| u16::try_from(items.iter().filter(|item| item.count == what).count()).unwrap_or(u16::MAX);
    Left {
        nodes: count(Count::Node),
        turns: count(Count::Turn),
    }
}

fn structured_and_text(structured: &Map<String, Value>) -> Fitted {
    Fitted {
        text: text::render(structured),
        structured: Value::Object(structured.clone()),
        link: None,
    }
}

pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests;
