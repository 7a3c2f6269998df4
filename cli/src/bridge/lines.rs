//! Standard input, line by line, on a thread of its own: a read from it cannot be cancelled.

use std::io::{self, BufRead as _, Read as _};

use anyhow::{Context as _, Result};
use tokio::sync::mpsc;

/// Lines that were read and not yet served.
const LINES_MAX: usize = 16;

/// One line of input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Text(String),
    /// It had more bytes than a message may have; all of it was skipped.
    TooLong,
}

/// Starts reading; the channel ends with the input.
pub(super) fn read(bytes_max: usize) -> Result<mpsc::Receiver<Line>> {
    let (sender, receiver) = mpsc::channel(LINES_MAX);
    std::thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || {
            let mut input = io::stdin().lock();
            while let Some(line) = next(&mut input, bytes_max) {
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        })
        .context("start reading standard input")?;
    Ok(receiver)
}

/// The next line without its end; None at the end of the input, or when it cannot be read.
fn next(input: &mut impl io::BufRead, bytes_max: usize) -> Option<Line> {
    let mut bytes = Vec::new();
    let read = input.by_ref().take(bytes_max as u64 + 1).read_until(b'\n', &mut bytes);
    match read {
        Ok(0) => return None,
        Ok(_) => {}
        Err(error) => {
            eprintln!("waggle mcp: read standard input: {error}");
            return None;
        }
    }
    if bytes.last() != Some(&b'\n') && bytes.len() > bytes_max {
        return skip_line(input).then_some(Line::TooLong);
    }
    // What is no UTF-8 becomes a message that does not parse, and is answered so.
    Some(Line::Text(String::from_utf8_lossy(&bytes).trim().to_owned()))
}

/// In constant memory; false when the input cannot be read.
fn skip_line(input: &mut impl io::BufRead) -> bool {
    loop {
        let Ok(buffer) = input.fill_buf() else { return false };
        if buffer.is_empty() {
            return true;
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(buffer.len(), |at| at + 1);
        input.consume(used);
        if end.is_some() {
            return true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_skipped_and_the_next_one_read() {
        let mut input = io::Cursor::new(b"ab\r\n\xff\n12345678\n1234567890\nlast".to_vec());
        let lines: Vec<_> = std::iter::from_fn(|| next(&mut input, 8)).collect();
        let text = |text: &str| Line::Text(text.to_owned());
        assert_eq!(
            lines,
            [
                text("ab"),
                text("\u{fffd}"),
                text("12345678"),
                Line::TooLong,
                text("last")
            ]
        );
    }
}
