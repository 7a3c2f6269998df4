//! What is taken from an item that is too large by itself: text first, then lists, then all but its name.

use serde_json::Value;

use super::{Item, UNCUT_BYTES};

/// Shortens the longest string inside by about `over` bytes, and at least by a little. False when none is long.
pub(super) fn cut_longest(value: &mut Value, over: usize) -> bool {
    fn longest(value: &mut Value) -> Option<&mut String> {
        match value {
            Value::String(text) => Some(text),
            Value::Array(items) => items.iter_mut().filter_map(longest).max_by_key(|text| text.len()),
            Value::Object(fields) => fields.values_mut().filter_map(longest).max_by_key(|text| text.len()),
            _ => None,
        }
    }
    let Some(text) = longest(value).filter(|text| text.len() > UNCUT_BYTES) else {
        return false;
    };
    // Escapes make a byte up to six long: cutting half of what is over, then looking again, wastes little.
    let target = text
        .len()
        .saturating_sub((over / 2).max(8))
        .max(UNCUT_BYTES.saturating_sub(4));
    let mut end = target;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text.push('…');
    true
}

/// Leaves an item nothing but its name. False when there was nothing more to take.
pub(super) fn keep_only_id(item: &mut Item) -> bool {
    let had_more = !item.also.is_empty();
    item.also.clear();
    let Some(fields) = item.value.as_object_mut() else {
        return had_more;
    };
    let name = ["id", "turn_id", "name", "project"]
        .into_iter()
        .find(|key| fields.contains_key(*key));
    let before = fields.len();
    if let Some(name) = name {
        fields.retain(|key, _| key == name || key == "content_truncated");
    }
    let taken = fields.len() < before;
    fields.insert("content_truncated".into(), true.into());
    had_more || taken
}

/// Takes the longest list or object away. False when there is none.
pub(super) fn drop_longest_list(value: &mut Value) -> bool {
    let Some(fields) = value.as_object_mut() else {
        return false;
    };
    let longest = fields
        .iter()
        .filter(|(_, value)| value.is_array() || value.is_object())
        .max_by_key(|(_, value)| value.to_string().len())
        .map(|(key, _)| key.clone());
    longest.is_some_and(|key| fields.shift_remove(&key).is_some())
}

/// `text` up to `bytes_max`, on a character boundary; whether it was cut.
pub(crate) fn shorten(text: &str, bytes_max: usize) -> (String, bool) {
    if text.len() <= bytes_max {
        return (text.to_owned(), false);
    }
    let mut end = bytes_max;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    (format!("{}…", text.get(..end).unwrap_or_default()), true)
}
