//! GraphML: memories and links for graph tools. Written only; an import takes the backup.
//!
//! Tags are joined by U+001F. XML forbids that character like most control characters, so it stands in the file as
//! U+FFFD, as every forbidden character does.

use std::io::{BufWriter, Write};

use sha2::{Digest, Sha256};
use waggle_memory::link::Link;
use waggle_memory::memory::Memory;
use waggle_memory::record::Record;

use crate::check::name;
use crate::counts::Counts;
use crate::error::WriteError;
use crate::json::hex;
use crate::limits::FILE_BYTES_MAX;
use crate::order::{Misplaced, Order};

/// Identity in the file, whose it is, name, type.
const KEYS: [(&str, &str, &str, &str); 15] = [
    ("n_label", "node", "label", "string"),
    ("n_content", "node", "content", "string"),
    ("n_node_type", "node", "node_type", "string"),
    ("n_project", "node", "project", "string"),
    ("n_tags", "node", "tags", "string"),
    ("n_confidence", "node", "confidence", "string"),
    ("n_valid_from", "node", "valid_from", "string"),
    ("n_valid_to", "node", "valid_to", "string"),
    ("n_created_at", "node", "created_at", "string"),
    ("n_version", "node", "version", "long"),
    ("e_relationship", "edge", "relationship", "string"),
    ("e_weight", "edge", "weight", "double"),
    ("e_confidence", "edge", "confidence", "string"),
    ("e_state", "edge", "state", "string"),
    ("e_created_at", "edge", "created_at", "string"),
];

const HEAD: &str = concat!(
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n",
    "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\" ",
    "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" ",
    "xsi:schemaLocation=\"http://graphml.graphdrawing.org/xmlns ",
    "http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd\">\n",
);

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Memories and links.
    pub counts: Counts,
    /// `sha256:` of the whole file.
    pub content_hash: String,
    /// Size of the file.
    pub bytes: u64,
}

/// Writes memories, then links, each by id. Records of other sorts have no place in a graph and are passed over.
pub struct Writer<W: Write> {
    out: BufWriter<W>,
    hasher: Sha256,
    bytes: u64,
    order: Order,
}

impl<W: Write> Writer<W> {
    /// Begins a file.
    pub fn new(out: W) -> Result<Self, WriteError> {
        let mut writer = Self {
            out: BufWriter::new(out),
            hasher: Sha256::new(),
            bytes: 0,
            order: Order::default(),
        };
        let mut head = HEAD.to_owned();
        for (id, of, name, kind) in KEYS {
            head.push_str(&format!(
                "  <key id=\"{id}\" for=\"{of}\" attr.name=\"{name}\" attr.type=\"{kind}\"/>\n"
            ));
        }
        head.push_str("  <graph id=\"graph\" edgedefault=\"directed\">\n");
        writer.put(&head)?;
        Ok(writer)
    }

    /// Writes a memory or a link.
    pub fn record(&mut self, record: &Record) -> Result<(), WriteError> {
        let element = match record {
            Record::Memory(memory) => node(&memory.memory),
            Record::Link(link) => edge(link),
            _ => return Ok(()),
        };
        self.order.take(record).map_err(|misplaced| match misplaced {
            Misplaced::OutOfOrder => WriteError::OutOfOrder { record: name(record) },
            Misplaced::Dangling(dangling) => WriteError::Dangling(dangling),
            Misplaced::TooMany { what, limit } => WriteError::TooLarge { what, limit },
        })?;
        self.put(&element)
    }

    /// Ends the file.
    pub fn finish(mut self) -> Result<Summary, WriteError> {
        self.put("  </graph>\n</graphml>\n")?;
        self.out.flush()?;
        let digest: [u8; 32] = self.hasher.finalize().into();
        Ok(Summary {
            counts: self.order.counts,
            content_hash: format!("sha256:{}", hex(&digest)),
            bytes: self.bytes,
        })
    }

    fn put(&mut self, text: &str) -> Result<(), WriteError> {
        self.bytes = self.bytes.saturating_add(u64::try_from(text.len()).unwrap_or(u64::MAX));
        if self.bytes > FILE_BYTES_MAX {
            return Err(WriteError::TooLarge {
                what: "bytes in one file",
                limit: FILE_BYTES_MAX,
            });
        }
        self.hasher.update(text.as_bytes());
        self.out.write_all(text.as_bytes())?;
        Ok(())
    }
}

fn node(memory: &Memory) -> String {
    let mut out = format!("    <node id=\"{}\">\n", memory.id);
    data(&mut out, "n_label", &memory.label);
    data(&mut out, "n_content", &memory.content);
    data(&mut out, "n_node_type", memory.kind.word());
    data(&mut out, "n_project", &memory.scope.project);
    data(&mut out, "n_tags", &memory.tags.join("\u{1f}"));
    data(&mut out, "n_confidence", memory.confidence.word());
    data(&mut out, "n_valid_from", &memory.valid_from.to_string());
    if let Some(to) = memory.valid_to {
        data(&mut out, "n_valid_to", &to.to_string());
    }
    data(&mut out, "n_created_at", &memory.recorded_at.to_string());
    data(&mut out, "n_version", &memory.version.to_string());
    out.push_str("    </node>\n");
    out
}

fn edge(link: &Link) -> String {
    let mut out = format!(
        "    <edge id=\"{}\" source=\"{}\" target=\"{}\">\n",
        link.id, link.source, link.target
    );
    data(&mut out, "e_relationship", link.relationship.word());
    let weight = link.weight_thousandths;
    data(&mut out, "e_weight", &format!("{}.{:03}", weight / 1000, weight % 1000));
    data(&mut out, "e_confidence", link.confidence.word());
    if let Some(resolution) = &link.resolution {
        data(
            &mut out,
            "e_state",
            if resolution.resolved { "resolved" } else { "open" },
        );
    }
    data(&mut out, "e_created_at", &link.created_at.to_string());
    out.push_str("    </edge>\n");
    out
}

fn data(out: &mut String, key: &str, text: &str) {
    out.push_str("      <data key=\"");
    out.push_str(key);
    out.push_str("\">");
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // A reader would make a line feed of it.
            '\r' => out.push_str("&#13;"),
            '\t' | '\n' => out.push(character),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out.push_str("</data>\n");
}
