//! Between the applied state and the recall indexes: reads whole tenants for a load, and single items after each
//! applied entry.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use waggle_memory::id::{MemoryId, TenantId, TurnId};
use waggle_memory::memory::{Evidence, Memory};
use waggle_memory::meta::ShardId;
use waggle_memory::outcome::Effects;
use waggle_memory::tables::Item;
use waggle_memory::tables::typed::TenantRows;
use waggle_memory::transcript::Turn;
use waggle_recall::cache::{Change, IndexCache, Source};
use waggle_recall::index::Document;
use waggle_shard::ApplyObserver;
use waggle_store::{Database, Fault};

/// Turns that one memory is shown together with.
const TURNS_OF_A_MEMORY_MAX: usize = 32;

/// Documents of the tenants of one shard.
pub(crate) struct RowSource<'a> {
    database: &'a Database,
    shard: ShardId,
    /// Namespaces of projects, by key: every turn asks for its project's.
    namespaces: RefCell<BTreeMap<String, String>>,
}

impl<'a> RowSource<'a> {
    pub(crate) fn new(database: &'a Database, shard: ShardId) -> Self {
        Self {
            database,
            shard,
            namespaces: RefCell::default(),
        }
    }

    fn of_turn(&self, rows: TenantRows<'_>, turn: &Turn) -> Document {
        let key = turn.scope.project_key();
        let mut namespaces = self.namespaces.borrow_mut();
        let namespace = namespaces.entry(key).or_insert_with(|| {
            rows.project(&turn.scope.project)
                .map(|project| project.namespace)
                .unwrap_or_default()
        });
        Document::of_turn(turn, namespace)
    }
}

fn of_memory(memory: &Memory, evidence: &[Evidence]) -> Document {
    let observed_at = evidence
        .first()
        .map_or(memory.recorded_at, |evidence| evidence.observed_at);
    let from_turns = evidence
        .iter()
        .filter_map(|evidence| evidence.turn.as_ref().map(|span| span.turn))
        .collect();
    let (session, agent_key) = (&memory.scope.session_id, memory.scope.agent_key());
    let further = |other: &dyn Fn(&Evidence) -> String, own: &str| -> Vec<String> {
        let names: BTreeSet<String> = evidence.iter().map(other).collect();
        names
            .into_iter()
            .filter(|name| !name.is_empty() && name != own)
            .collect()
    };
    Document {
        also_sessions: further(&|evidence| evidence.scope.session_id.clone(), session),
        also_agent_keys: further(&|evidence| evidence.scope.agent_key(), &agent_key),
        ..Document::of_memory(memory, from_turns, observed_at)
    }
}

/// One memory, as a change of it is indexed.
fn of_one_memory(rows: TenantRows<'_>, memory: &Memory) -> Document {
    let evidence = rows.evidence(memory.id, TURNS_OF_A_MEMORY_MAX);
    let evidence: Vec<Evidence> = evidence.into_iter().map(|(_, evidence)| evidence).collect();
    with_vector(rows, of_memory(memory, &evidence))
}

fn with_vector(rows: TenantRows<'_>, document: Document) -> Document {
    let item = document.item;
    let vector = rows.vector(item);
    let awaits = vector.is_none() && rows.awaits_vector(item);
    document.with_vector(vector, awaits)
}

/// A page of documents that are neighbours in the order of their items, with their vectors.
fn with_vectors(rows: TenantRows<'_>, documents: Vec<Document>) -> Vec<Document> {
    let (Some(first), Some(last)) = (documents.first(), documents.last()) else {
        return documents;
    };
    let mut vectors = rows.vectors_between(first.item, last.item, documents.len());
    documents
        .into_iter()
        .map(|document| {
            let vector = vectors.remove(&document.item);
            let awaits = vector.is_none() && rows.awaits_vector(document.item);
            document.with_vector(vector, awaits)
        })
        .collect()
}

impl Source for RowSource<'_> {
    type Error = Fault;

    /// Memories in the order of their ids, then turns in the order of theirs, which is the order of time.
    fn page(&self, tenant: &TenantId, after: Option<&Document>, limit: usize) -> Result<Vec<Document>, Fault> {
        self.database.read(self.shard, |tables| {
            let rows = TenantRows::new(tables, tenant);
            let turns_after = |after: Option<TurnId>| {
                let turns = rows.turns_after(after, limit);
                with_vectors(rows, turns.iter().map(|turn| self.of_turn(rows, turn)).collect())
            };
            let memories_after = |after: Option<MemoryId>| {
                let memories = rows.memories_after(after, limit);
                let evidence = rows.evidence_of_neighbours(&memories, TURNS_OF_A_MEMORY_MAX);
                let documents = memories.iter().zip(&evidence);
                with_vectors(
                    rows,
                    documents
                        .map(|(memory, evidence)| of_memory(memory, evidence))
                        .collect(),
                )
            };
            let last = after.map(|document| document.item);
            if let Some(Item::Turn(turn)) = last {
                return turns_after(Some(turn));
            }
            let after = match last {
                Some(Item::Memory(memory)) => Some(memory),
                _ => None,
            };
            let memories = memories_after(after);
            if memories.is_empty() {
                turns_after(None)
            } else {
                memories
            }
        })
    }

    fn document(&self, tenant: &TenantId, item: Item) -> Result<Option<Document>, Fault> {
        self.database.read(self.shard, |tables| {
            let rows = TenantRows::new(tables, tenant);
            match item {
                Item::Memory(id) => rows.memory(id).map(|memory| of_one_memory(rows, &memory)),
                Item::Turn(id) => rows.turn(id).map(|turn| with_vector(rows, self.of_turn(rows, &turn))),
            }
        })
    }
}

/// Keeps loaded indexes up to date. Called on the apply thread before anybody is answered, so a caller's next read finds
/// what it wrote.
pub(crate) struct IndexObserver {
    indexes: Arc<IndexCache>,
    database: Arc<Database>,
    /// Tenants whose items wait for vectors, told to the background task.
    late: OnceLock<tokio::sync::mpsc::Sender<(ShardId, TenantId)>>,
}

impl IndexObserver {
    pub(crate) fn new(indexes: Arc<IndexCache>, database: Arc<Database>) -> Self {
        Self {
            indexes,
            database,
            late: OnceLock::new(),
        }
    }

    /// Where to announce tenants with items that wait for vectors.
    pub(crate) fn announce_late_vectors(&self, to: tokio::sync::mpsc::Sender<(ShardId, TenantId)>) {
        // Set once at start; a second call would be a mistake of ours and changes nothing.
        let _ = self.late.set(to);
    }

    fn update(&self, shard: ShardId, tenant: &TenantId, items: &[Item]) {
        if !self.indexes.holds(tenant) {
            return;
        }
        let source = RowSource::new(&self.database, shard);
        let mut changes = Vec::with_capacity(items.len());
        for item in items {
            match source.document(tenant, *item) {
                Ok(Some(document)) => changes.push(Change::Upsert(Box::new(document))),
                Ok(None) => changes.push(Change::Remove(*item)),
                Err(fault) => {
                    // The rows are there; the index is not trusted any more and is built again on the next use.
                    tracing::error!(%fault, "read a changed item for its index");
                    self.indexes.forget(tenant);
                    return;
                }
            }
        }
        self.indexes.apply(tenant, changes);
    }
}

impl ApplyObserver for IndexObserver {
    fn applied(&self, shard: ShardId, _log_index: u64, effects: &[Effects]) {
        for effects in effects {
            let Some(tenant) = &effects.tenant else { continue };
            if !effects.changed.is_empty() {
                self.update(shard, tenant, &effects.changed);
            }
            if effects.awaiting_vectors
                && let Some(late) = self.late.get()
            {
                // A full queue is no loss: the task walks every tenant it has heard of until nothing waits.
                let _ = late.try_send((shard, tenant.clone()));
            }
        }
    }

    fn replaced(&self, _shard: ShardId) {
        self.indexes.forget_where(|_| true);
    }
}
