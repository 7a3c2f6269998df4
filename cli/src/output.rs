//! Data on stdout, as a table for people or as JSON for programs; progress and errors go to stderr.

use std::io::{self, Write as _};

use clap::ValueEnum;
use serde_json::Value;

/// How a reading verb shows its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    #[default]
    Table,
    Json,
}

#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct OutputArgs {
    /// How to show the result.
    #[arg(long, value_enum, default_value_t)]
    output: Format,
    /// Short for --output json.
    #[arg(long, conflicts_with = "output")]
    json: bool,
}

impl OutputArgs {
    pub(crate) fn format(self) -> Format {
        if self.json { Format::Json } else { self.output }
    }

    /// Shows data in the chosen way.
    pub(crate) fn show(self, data: &Value, table: impl FnOnce() -> String) -> anyhow::Result<()> {
        match self.format() {
            Format::Json => print(&format!("{data:#}\n")),
            Format::Table => print(&table()),
        }
    }
}

/// For commands that answer in JSON in any case, so that scripts need not know which ones do.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct JsonArgs {
    /// How to show the result: JSON in any case.
    #[arg(long, value_parser = ["json"])]
    output: Option<String>,
    /// Short for --output json.
    #[arg(long, conflicts_with = "output")]
    json: bool,
}

impl JsonArgs {
    #[expect(clippy::unused_self, reason = "the flags are accepted and change nothing")]
    pub(crate) fn show(&self, data: &Value) -> anyhow::Result<()> {
        print(&format!("{data:#}\n"))
    }
}

/// Writes to stdout. A reader that went away, such as `head`, is not an error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

/// Columns as wide as their widest cell, no borders.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows
            .iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count());
        cells
            .chain(head.get(column).map(|title| title.len()))
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> = cells
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        format!("{}\n", padded.join("  ").trim_end())
    };
    let mut text = line(&mut head.iter().copied());
    for row in rows {
        text.push_str(&line(&mut row.iter().map(String::as_str)));
    }
    text
}

/// A cell: the text of a field, a dash for none.
pub(crate) fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_end_without_blanks() {
        let rows = [
            vec!["a".to_owned(), "long cell".to_owned()],
            vec!["bcdef".to_owned(), String::new()],
        ];
        assert_eq!(table(&["ID", "NAME"], &rows), "ID     NAME\na      long cell\nbcdef\n");
    }
}
