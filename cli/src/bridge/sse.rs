//! Server-sent events: the data of each, put together from pieces of any size.

/// Collects one stream.
#[derive(Debug, Default)]
pub(super) struct Events {
    rest: Vec<u8>,
    data: String,
    bytes_max: usize,
}

/// An event or a line has more bytes than a message may have.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

impl Events {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            ..Self::default()
        }
    }

    /// Takes a piece and gives the data of the events that it completed. Comments and other fields are passed over.
    pub(super) fn push(&mut self, piece: &[u8]) -> Result<Vec<String>, TooLarge> {
        let mut complete = Vec::new();
        // Only the new bytes are searched, so that many small pieces cost no more than one large.
        let mut start = 0;
        for (at, byte) in piece.iter().enumerate() {
            if *byte != b'\n' {
                continue;
            }
            self.rest.extend_from_slice(piece.get(start..at).unwrap_or_default());
            start = at + 1;
            let line = String::from_utf8_lossy(&std::mem::take(&mut self.rest)).into_owned();
            self.line(line.trim_end_matches('\r'), &mut complete)?;
        }
        self.rest.extend_from_slice(piece.get(start..).unwrap_or_default());
        if self.rest.len() > self.bytes_max {
            return Err(TooLarge);
        }
        Ok(complete)
    }

    fn line(&mut self, line: &str, complete: &mut Vec<String>) -> Result<(), TooLarge> {
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            if !data.is_empty() {
                complete.push(data);
            }
        } else if let Some(data) = line.strip_prefix("data:") {
            if !self.data.is_empty() {
                self.data.push('\n');
            }
            self.data.push_str(data.strip_prefix(' ').unwrap_or(data));
            if self.data.len() > self.bytes_max {
                return Err(TooLarge);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str =
        ": hello\n\nevent: message\r\ndata: {\"a\":\r\ndata: \"ü\"}\r\n\r\nid: 1\ndata:2\n\ndata: unfinished";

    #[test]
    fn pieces_of_any_size_give_the_same_events() {
        for size in [1, 2, 3, 7, 1000] {
            let mut events = Events::new(100);
            let found: Vec<String> = STREAM
                .as_bytes()
                .chunks(size)
                .flat_map(|piece| events.push(piece).expect("small"))
                .collect();
            assert_eq!(found, ["{\"a\":\n\"ü\"}", "2"], "{size}");
        }
    }

    #[test]
    fn a_stream_is_bounded() {
        assert_eq!(Events::new(4).push(b"data: 1"), Err(TooLarge));
        assert_eq!(Events::new(4).push(b"data: 12345\n"), Err(TooLarge));
    }
}
