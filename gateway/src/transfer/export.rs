//! From the node's stream of records to a file, record by record.

use std::collections::VecDeque;
use std::io::{BufWriter, Write};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;
use tonic::{Request, Streaming};
use waggle_formats::error::WriteError;
use waggle_formats::{abhi, backup, graphml};
use waggle_memory::record::{MemoryRecord, Record};
use waggle_memory::scope::Scope;
use waggle_memory::time::Millis;
use waggle_proto::log::decode_record;
use waggle_proto::wire::{ExportHead, ExportPage, ExportRequest};

use super::description::{Description, Format};
use super::secrets::Screen;
use crate::app::App;
use crate::auth::Caller;
use crate::fault::Fault;
use crate::route::{Call, broken};

/// What was written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Written {
    pub(crate) nodes: u64,
    pub(crate) edges: u64,
    pub(crate) content_hash: String,
    pub(crate) redactions: u64,
    /// Links or memories that the format leaves out.
    pub(crate) edges_left_out: u64,
    pub(crate) nodes_left_out: u64,
}

/// A stream of records that began. Read on a thread that may block.
pub(crate) struct Incoming {
    head: ExportHead,
    read_at: String,
    stream: Streaming<ExportPage>,
    runtime: Handle,
    deadline: Instant,
    ready: VecDeque<Record>,
    /// A memory whose further parts may follow.
    held: Option<Box<MemoryRecord>>,
    last: bool,
}

/// Asks the node for the records of an export.
pub(crate) async fn open(
    app: &App,
    caller: &Caller,
    call: &Call,
    export: &Description,
    deadline: Instant,
) -> Result<Incoming, Fault> {
    let pages_only = matches!(export.format, Format::Graphml | Format::Html);
    let mut stream = app
        .cluster
        .transfer(caller, call, |mut client, context, _| {
            // Without a deadline for the node: it bounds streams itself, and they may outlive a call.
            let request = Request::new(ExportRequest {
                context: Some(context),
                scope: Some(export.scope()),
                transcripts: !pages_only,
                graph: true,
                tombstones: !pages_only,
            });
            async move { client.export(request).await }
        })
        .await?;
    let first = stream.message().await.map_err(|status| broken(&status))?;
    let first = first.ok_or_else(cut)?;
    let head = first.head.unwrap_or_default();
    let read_at = head
        .read_at
        .as_ref()
        .map(|point| app.read_points.seal(point, caller.tenant.as_str()))
        .unwrap_or_default();
    let mut incoming = Incoming {
        head,
        read_at,
        stream,
        runtime: Handle::current(),
        deadline,
        ready: VecDeque::new(),
        held: None,
        last: false,
    };
    incoming.take(first.records, first.last)?;
    Ok(incoming)
}

fn cut() -> Fault {
    Fault::unavailable(
        "the node ended the export before it was complete; repeat the call",
        Duration::from_secs(1),
    )
}

impl Incoming {
    /// The state that is read, opaque.
    pub(crate) fn read_at(&self) -> &str {
        &self.read_at
    }

    /// The next record, whole. Blocks.
    pub(super) fn next(&mut self) -> Result<Option<Record>, Fault> {
        loop {
            if let Some(record) = self.ready.pop_front() {
                return Ok(Some(record));
            }
            if self.last {
                return Ok(None);
            }
            let next = self
                .runtime
                .block_on(tokio::time::timeout_at(self.deadline, self.stream.message()));
            let page = match next {
                Ok(Ok(Some(page))) => page,
                Ok(Ok(None)) => return Err(cut()),
                Ok(Err(status)) => return Err(broken(&status)),
                Err(_) => {
                    return Err(Fault::unavailable(
                        "the export takes longer than this call may; get it by its address, /api/graph/export, or export by project",
                        Duration::from_secs(60),
                    ));
                }
            };
            self.take(page.records, page.last)?;
        }
    }

    fn take(&mut self, records: Vec<Vec<u8>>, last: bool) -> Result<(), Fault> {
        for bytes in records {
            let record = decode_record(&bytes).map_err(|error| {
                tracing::error!(%error, "a node sent a record that cannot be read");
                Fault::internal()
            })?;
            self.join(record);
        }
        self.last = last;
        if last {
            self.ready.extend(self.held.take().map(Record::Memory));
        }
        Ok(())
    }

    /// Parts of one memory follow each other.
    fn join(&mut self, record: Record) {
        match (record, &mut self.held) {
            (Record::Memory(part), Some(held)) if held.memory.id == part.memory.id => held.join(*part),
            (record, held) => {
                self.ready.extend(held.take().map(Record::Memory));
                match record {
                    Record::Memory(record) => *held = Some(record),
                    other => self.ready.push_back(other),
                }
            }
        }
    }
}

/// What an export is written with.
pub(crate) struct Writing<'a> {
    pub(crate) app: &'a App,
    pub(crate) tenant: &'a str,
    pub(crate) export: &'a Description,
    /// For the answer of a call, where an archive has the form of text.
    pub(crate) inline: bool,
}

impl Writing<'_> {
    /// Writes nothing to `out` before the file is whole: it grows in a file that has no name. Blocks.
    pub(crate) fn write_whole(&self, incoming: Incoming, mut out: impl Write) -> Result<Written, Fault> {
        let mut scratch = BufWriter::new(self.app.transfer.uploads.scratch()?);
        let written = self.write(incoming, &mut scratch)?;
        let scratch = scratch.into_inner().map_err(|error| {
            tracing::warn!(%error, "an export cannot be kept until it is whole");
            Fault::unavailable(
                "the gateway has no room for the export; try again",
                Duration::from_secs(30),
            )
        })?;
        super::pages::copy(scratch, &mut out)?;
        Ok(written)
    }

    /// Writes a file, while records come. Blocks.
    pub(crate) fn write(&self, mut incoming: Incoming, out: impl Write) -> Result<Written, Fault> {
        let mut screen = Screen::new(self.export.secrets);
        let mut written = match self.export.format {
            Format::Json => self.write_json(&mut incoming, &mut screen, out)?,
            Format::Vault => self.write_vault(&mut incoming, out)?,
            Format::Graphml => write_graphml(&mut incoming, &mut screen, out)?,
            Format::Abhi => self.write_abhi(&mut incoming, &mut screen, out)?,
            Format::Html => self.write_html(&mut incoming, out)?,
            Format::Bundle => self.write_bundle(&mut incoming, out)?,
        };
        screen.finish()?;
        written.redactions = written.redactions.saturating_add(screen.redactions);
        Ok(written)
    }

    fn write_json(&self, incoming: &mut Incoming, screen: &mut Screen, out: impl Write) -> Result<Written, Fault> {
        let header = backup::Header {
            tenant_id: self.tenant.to_owned(),
            exported_at: Millis(self.export.exported_at),
            read_at: incoming.read_at.clone(),
            scope: self.scope(),
            embedding_model_id: incoming.head.embedding_model.clone(),
            rules_version: incoming.head.rules_version,
        };
        let mut writer = backup::Writer::new(out, &header).map_err(|error| fault_of(&error))?;
        while let Some(record) = incoming.next()? {
            writer.record(&screen.pass(record)?).map_err(|error| fault_of(&error))?;
        }
        let signing = &self.app.transfer.signing;
        let summary = writer
            .finish_signed(|hash| signing.sign(hash))
            .map_err(|error| fault_of(&error))?;
        Ok(Written {
            nodes: summary.counts.nodes,
            edges: summary.counts.edges,
            content_hash: summary.content_hash,
            ..Written::default()
        })
    }
}

impl Writing<'_> {
    /// A container is written with steps back, which a stream has not: it grows in a file that has no name.
    fn write_abhi(&self, incoming: &mut Incoming, screen: &mut Screen, mut out: impl Write) -> Result<Written, Fault> {
        let mut scratch = self.app.transfer.uploads.scratch()?;
        let info = abhi::Info {
            tenant_id: self.tenant.to_owned(),
            scope: self.scope(),
            embedding_model_id: incoming.head.embedding_model.clone(),
            embedding_dim: 0,
            include_low_confidence_edges: self.export.weak_links,
        };
        let mut writer = abhi::Writer::new(&mut scratch, info, None).map_err(|error| fault_of(&error))?;
        while let Some(record) = incoming.next()? {
            writer.record(&screen.pass(record)?).map_err(|error| fault_of(&error))?;
        }
        screen.finish()?;
        let signing = &self.app.transfer.signing;
        let summary = writer
            .finish_signed(|hash| signing.sign(hash))
            .map_err(|error| fault_of(&error))?;
        super::pages::copy(scratch, &mut out)?;
        Ok(Written {
            nodes: summary.counts.nodes,
            edges: summary.counts.edges,
            content_hash: summary.content_hash,
            edges_left_out: summary.edges_filtered,
            ..Written::default()
        })
    }

    fn scope(&self) -> Scope {
        Scope {
            project: self.export.project.clone(),
            agent_id: self.export.agent_id.clone(),
            session_id: self.export.session_id.clone(),
        }
    }
}

fn write_graphml(incoming: &mut Incoming, screen: &mut Screen, out: impl Write) -> Result<Written, Fault> {
    let mut writer = graphml::Writer::new(out).map_err(|error| fault_of(&error))?;
    while let Some(record) = incoming.next()? {
        writer.record(&screen.pass(record)?).map_err(|error| fault_of(&error))?;
    }
    let summary = writer.finish().map_err(|error| fault_of(&error))?;
    Ok(Written {
        nodes: summary.counts.nodes,
        edges: summary.counts.edges,
        content_hash: summary.content_hash,
        ..Written::default()
    })
}

fn fault_of(error: &WriteError) -> Fault {
    match error {
        WriteError::TooLarge { .. } => Fault::new("payload_too_large", error.to_string()),
        // The reader went away; nobody hears this.
        WriteError::Io(_) => Fault::unavailable("the export was not fetched to its end", Duration::from_secs(1)),
        _ => {
            tracing::error!(%error, "stored records do not fit the export");
            Fault::internal()
        }
    }
}

/// Keeps the beginning of what is written, and counts the rest.
pub(crate) struct Beginning {
    pub(crate) bytes: Vec<u8>,
    pub(crate) bytes_max: usize,
    pub(crate) total: u64,
}

impl Beginning {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            bytes: Vec::new(),
            bytes_max,
            total: 0,
        }
    }

    /// Everything, if it was no more than may be kept.
    pub(crate) fn whole(self) -> Option<Vec<u8>> {
        let kept = u64::try_from(self.bytes.len()).ok();
        (kept == Some(self.total)).then_some(self.bytes)
    }
}

impl Write for &mut Beginning {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let room = self.bytes_max.saturating_sub(self.bytes.len());
        let kept = bytes.get(..room.min(bytes.len())).unwrap_or_default();
        self.bytes.extend_from_slice(kept);
        self.total = self
            .total
            .saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
