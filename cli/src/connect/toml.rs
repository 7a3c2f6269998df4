//! Edits TOML in place: comments, order and blank lines of everything else stay.

use serde_json::{Map, Value};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike};

use super::malformed::Malformed;

const BOM: char = '\u{feff}';

/// The table at `[outer.name]`; None if there is none.
pub(crate) fn get(text: &str, outer: &str, name: &str) -> Result<Option<Value>, Malformed> {
    let document = parse(&Lines::of(text)?.body)?;
    let Some(tables) = outer_of(&document, outer)? else {
        return Ok(None);
    };
    Ok(tables.get(name).map(to_value))
}

/// Writes `[outer.name]` with these fields, instead of what was there under the name.
pub(crate) fn set(text: &str, outer: &str, name: &str, fields: &Map<String, Value>) -> Result<String, Malformed> {
    let lines = Lines::of(text)?;
    let mut document = parse(&lines.body)?;
    outer_of(&document, outer)?;
    let was_blank = lines.body.trim().is_empty();
    let tables = document.entry(outer).or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let Some(tables) = tables.as_table_like_mut() else {
        return Err(not_a_table(&lines.body, outer));
    };
    let mut table = Table::new();
    for (field, value) in fields {
        table.insert(field, to_item(value));
    }
    match tables.get_mut(name) {
        // Its comments stay in front of it.
        Some(Item::Table(old)) => {
            *table.decor_mut() = old.decor().clone();
            if let Some(position) = old.position() {
                table.set_position(Some(position));
            }
            *old = table;
        }
        Some(other) => *other = Item::Value(table.into_inline_table().into()),
        None => {
            if !was_blank {
                table.decor_mut().set_prefix("\n");
            }
            tables.insert(name, Item::Table(table));
        }
    }
    Ok(lines.restore(&document.to_string()))
}

/// Takes `[outer.name]` out; the text is the same when there is none.
pub(crate) fn remove(text: &str, outer: &str, name: &str) -> Result<String, Malformed> {
    let lines = Lines::of(text)?;
    let mut document = parse(&lines.body)?;
    if outer_of(&document, outer)?.is_none_or(|tables| !tables.contains_key(name)) {
        return Ok(text.to_owned());
    }
    let mut empty = false;
    if let Some(tables) = document.get_mut(outer).and_then(Item::as_table_like_mut) {
        tables.remove(name);
        empty = tables.is_empty();
    }
    let implicit = document
        .get(outer)
        .and_then(Item::as_table)
        .is_some_and(Table::is_implicit);
    if empty && implicit {
        document.remove(outer);
    }
    Ok(lines.restore(&document.to_string()))
}

/// A text with line feeds only, and how to get its own line ends back.
struct Lines {
    body: String,
    bom: bool,
    carriage_returns: bool,
}

impl Lines {
    fn of(text: &str) -> Result<Self, Malformed> {
        let body = text.strip_prefix(BOM).unwrap_or(text);
        let all = body.matches('\n').count();
        let with_return = body.matches("\r\n").count();
        if with_return != 0 && with_return != all {
            let at = body
                .match_indices('\n')
                .find(|(at, _)| !body.get(..*at).is_some_and(|head| head.ends_with('\r')));
            return Err(Malformed::at(
                body,
                at.map_or(0, |(at, _)| at),
                "lines end in two ways (CR LF and LF), which an edit would not keep; make them one",
            ));
        }
        Ok(Self {
            body: if with_return == 0 {
                body.to_owned()
            } else {
                body.replace("\r\n", "\n")
            },
            bom: body.len() != text.len(),
            carriage_returns: with_return != 0,
        })
    }

    fn restore(&self, body: &str) -> String {
        let bom = if self.bom { "\u{feff}" } else { "" };
        if self.carriage_returns {
            format!("{bom}{}", body.replace('\n', "\r\n"))
        } else {
            format!("{bom}{body}")
        }
    }
}

fn parse(body: &str) -> Result<DocumentMut, Malformed> {
    body.parse::<DocumentMut>().map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        Malformed::at(body, at, error.message())
    })
}

fn outer_of<'a>(document: &'a DocumentMut, outer: &str) -> Result<Option<&'a dyn TableLike>, Malformed> {
    match document.get(outer) {
        None => Ok(None),
        Some(item) => item
            .as_table_like()
            .map(Some)
            .ok_or_else(|| not_a_table(&document.to_string(), outer)),
    }
}

fn not_a_table(body: &str, outer: &str) -> Malformed {
    Malformed::at(body, body.find(outer).unwrap_or(0), format!("'{outer}' is not a table"))
}

fn to_item(value: &Value) -> Item {
    match value {
        Value::Bool(word) => toml_edit::value(*word),
        Value::Number(number) => toml_edit::value(number.as_i64().unwrap_or_default()),
        Value::Array(items) => {
            let texts: Array = items.iter().filter_map(Value::as_str).collect();
            toml_edit::value(texts)
        }
        Value::Object(fields) => {
            let table: InlineTable = fields
                .iter()
                .filter_map(|(name, inner)| Some((name.clone(), to_item(inner).into_value().ok()?)))
                .collect();
            toml_edit::value(table)
        }
        other => toml_edit::value(other.as_str().unwrap_or_default()),
    }
}

fn to_value(item: &Item) -> Value {
    if let Some(table) = item.as_table_like() {
        return Value::Object(
            table
                .iter()
                .map(|(name, inner)| (name.to_owned(), to_value(inner)))
                .collect(),
        );
    }
    match item.as_value() {
        Some(toml_edit::Value::String(text)) => Value::from(text.value().as_str()),
        Some(toml_edit::Value::Integer(number)) => Value::from(*number.value()),
        Some(toml_edit::Value::Boolean(word)) => Value::from(*word.value()),
        Some(toml_edit::Value::Array(items)) => items
            .iter()
            .map(|inner| to_value(&Item::Value(inner.clone())))
            .collect(),
        Some(other) => Value::from(other.to_string().trim()),
        None => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours() -> Map<String, Value> {
        let fields = serde_json::json!({"url": "http://h/mcp", "bearer_token_env_var": "WAGGLE_KEY"});
        fields.as_object().cloned().unwrap_or_default()
    }

    const ADDED: &str = "[mcp_servers.waggle]\nurl = \"http://h/mcp\"\nbearer_token_env_var = \"WAGGLE_KEY\"\n";

    /// Set gives the expected text, and remove gives the first text back.
    fn check(before: &str, after: &str) {
        let set_once = set(before, "mcp_servers", "waggle", &ours()).expect("TOML");
        assert_eq!(set_once, after);
        assert_eq!(
            set(after, "mcp_servers", "waggle", &ours()).expect("TOML"),
            after,
            "a second time"
        );
        assert_eq!(remove(after, "mcp_servers", "waggle").expect("TOML"), before);
    }

    #[test]
    fn our_table_comes_and_goes_and_the_rest_stays() {
        check("", ADDED);
        check(
            "model = \"gpt\" # mine\n",
            &format!("model = \"gpt\" # mine\n\n{ADDED}"),
        );
        check(
            "# head\n\n[mcp_servers.other]\ncommand = 'x'   # keep\nargs = [ 'a',\n  'b', ]\n",
            &format!("# head\n\n[mcp_servers.other]\ncommand = 'x'   # keep\nargs = [ 'a',\n  'b', ]\n\n{ADDED}"),
        );
    }

    #[test]
    fn line_ends_and_byte_order_mark_stay() {
        check(
            "\u{feff}model = \"gpt\"\r\n",
            &format!("\u{feff}model = \"gpt\"\r\n\r\n{}", ADDED.replace('\n', "\r\n")),
        );
        let mixed = set("a = 1\r\nb = 2\n", "mcp_servers", "waggle", &ours()).expect_err("refused");
        assert_eq!(mixed.line, 2);
    }

    #[test]
    fn an_entry_of_the_name_is_replaced_where_it_stands() {
        let before = "[mcp_servers.waggle]\ncommand = \"old\"\n\n# next\n[profiles.x]\na = 1\n";
        let after = set(before, "mcp_servers", "waggle", &ours()).expect("TOML");
        assert_eq!(after, format!("{ADDED}\n# next\n[profiles.x]\na = 1\n"));
        let inline = set(
            "mcp_servers = { waggle = { command = \"old\" } }\n",
            "mcp_servers",
            "waggle",
            &ours(),
        );
        let inline = get(&inline.expect("TOML"), "mcp_servers", "waggle")
            .expect("TOML")
            .expect("entry");
        assert_eq!(inline["url"], "http://h/mcp");
    }

    #[test]
    fn what_is_malformed_is_refused_with_its_place() {
        let wrong = set("a = 1\nb = \n", "mcp_servers", "waggle", &ours()).expect_err("malformed");
        assert_eq!(wrong.line, 2, "{wrong}");
        assert!(set("mcp_servers = 1\n", "mcp_servers", "waggle", &ours()).is_err());
    }

    #[test]
    fn another_parser_reads_the_same() {
        let text = set("[a]\nb = [1, 2]\n", "mcp_servers", "waggle", &ours()).expect("TOML");
        let read: Value = toml::from_str(&text).expect("TOML");
        assert_eq!(read["a"]["b"][1], 2);
        assert_eq!(read["mcp_servers"]["waggle"], Value::Object(ours()));
    }
}
