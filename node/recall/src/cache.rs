//! The indexes of a node: loaded on first use, kept under a budget of bytes, the longest unused thrown out first.
//!
//! Loading runs on the thread of the first caller; everybody else may search what is there already and says so
//! ("index_warming"). Changes that are applied meanwhile are noted by id only and read again when the load is through,
//! so an index is never older than the last change that its tenant's state had when the load ended.
//!
//! Nothing here reads rows: whoever loads gives a [`Source`]. Dropping the cache loses nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex, RwLock};
use waggle_memory::id::TenantId;
use waggle_memory::tables::Item;

use crate::index::{Document, TenantIndex};

/// Where documents come from: the applied state of the replica.
pub trait Source {
    /// Why a read failed.
    type Error;

    /// The items after `after`, in any order that does not change, at most `limit`; empty at the end. Turns of a session
    /// are best given in their order.
    fn page(&self, tenant: &TenantId, after: Option<&Document>, limit: usize) -> Result<Vec<Document>, Self::Error>;

    /// The item as it is now; None if it is no more.
    fn document(&self, tenant: &TenantId, item: Item) -> Result<Option<Document>, Self::Error>;
}

/// A change of one item.
#[derive(Clone, Debug)]
pub enum Change {
    /// New or different.
    Upsert(Box<Document>),
    /// Erased.
    Remove(Item),
}

impl Change {
    fn item(&self) -> Item {
        match self {
            Self::Upsert(document) => document.item,
            Self::Remove(item) => *item,
        }
    }
}

/// An index that somebody uses. It stays valid, and may be evicted meanwhile.
#[derive(Clone)]
pub struct Handle {
    /// The index. Hold the lock for one search.
    pub index: Arc<RwLock<TenantIndex>>,
    /// False while it loads: an answer from it is incomplete and must say so.
    pub complete: bool,
}

/// What the cache did so far, and what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Indexes held.
    pub tenants: usize,
    /// Their bytes.
    pub bytes: usize,
    /// Loads begun.
    pub loads: u64,
    /// Loads that failed.
    pub load_failures: u64,
    /// Indexes thrown out for room.
    pub evictions: u64,
    /// Compactions.
    pub compactions: u64,
}

/// The indexes of a node.
pub struct IndexCache {
    model: String,
    dimensions: usize,
    budget_bytes: usize,
    entries: Mutex<Entries>,
    loaded: Condvar,
    loads: AtomicU64,
    load_failures: AtomicU64,
    evictions: AtomicU64,
    compactions: AtomicU64,
}

#[derive(Default)]
struct Entries {
    by_tenant: BTreeMap<TenantId, Entry>,
    /// Counts uses; the entry with the lowest number was unused longest.
    clock: u64,
}

struct Entry {
    index: Arc<RwLock<TenantIndex>>,
    used: u64,
    bytes: usize,
    /// While it loads: what changed since. None when complete.
    missed: Option<BTreeSet<Item>>,
}

/// Documents of one page of a load: small enough that a writer never waits long for the lock.
const PAGE: usize = 512;

impl IndexCache {
    /// An empty cache for indexes of one model.
    pub fn new(model: &str, dimensions: usize, budget_bytes: usize) -> Self {
        Self {
            model: model.to_owned(),
            dimensions,
            budget_bytes,
            entries: Mutex::default(),
            loaded: Condvar::new(),
            loads: AtomicU64::new(0),
            load_failures: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
            compactions: AtomicU64::new(0),
        }
    }

    /// The index of a tenant if it is here, complete or loading. Never waits.
    pub fn lookup(&self, tenant: &TenantId) -> Option<Handle> {
        let mut entries = self.entries.lock();
        entries.clock += 1;
        let clock = entries.clock;
        let entry = entries.by_tenant.get_mut(tenant)?;
        entry.used = clock;
        Some(Handle {
            index: entry.index.clone(),
            complete: entry.missed.is_none(),
        })
    }

    /// The complete index of a tenant. Loads it on this thread if nobody does yet, else waits for whoever does. Blocks:
    /// call it from a thread made for that. A failed load leaves nothing behind, and the next caller tries again.
    pub fn load<S: Source>(&self, tenant: &TenantId, source: &S) -> Result<Handle, S::Error> {
        let index = loop {
            let mut entries = self.entries.lock();
            entries.clock += 1;
            let clock = entries.clock;
            match entries.by_tenant.get_mut(tenant) {
                Some(entry) if entry.missed.is_none() => {
                    entry.used = clock;
                    return Ok(Handle {
                        index: entry.index.clone(),
                        complete: true,
                    });
                }
                Some(_) => self.loaded.wait(&mut entries),
                None => {
                    let index = Arc::new(RwLock::new(TenantIndex::new(&self.model, self.dimensions)));
                    let entry = Entry {
                        index: index.clone(),
                        used: clock,
                        bytes: 0,
                        missed: Some(BTreeSet::new()),
                    };
                    entries.by_tenant.insert(tenant.clone(), entry);
                    break index;
                }
            }
        };
        self.loads.fetch_add(1, Ordering::Relaxed);
        // Also when the source panics: else every later caller would wait for a load that nobody runs.
        let mut guard = LoadGuard {
            cache: self,
            tenant,
            index: &index,
            done: false,
        };
        self.fill(tenant, source, &index)?;
        guard.done = true;
        drop(guard);
        self.loaded.notify_all();
        self.evict(tenant);
        Ok(Handle { index, complete: true })
    }

    fn fill<S: Source>(&self, tenant: &TenantId, source: &S, index: &Arc<RwLock<TenantIndex>>) -> Result<(), S::Error> {
        let mut last: Option<Document> = None;
        loop {
            let page = source.page(tenant, last.as_ref(), PAGE)?;
            if page.is_empty() {
                break;
            }
            let mut writing = index.write();
            page.iter().for_each(|document| writing.upsert(document));
            last = page.into_iter().next_back();
        }
        loop {
            let missed = {
                let mut entries = self.entries.lock();
                let Some(entry) = Self::own(&mut entries, tenant, index) else {
                    return Ok(());
                };
                let missed = entry.missed.as_mut().map(std::mem::take).unwrap_or_default();
                if missed.is_empty() {
                    // Under the lock: a change that comes after this is applied to the index itself.
                    entry.missed = None;
                    entry.bytes = index.read().resident_bytes();
                    return Ok(());
                }
                missed
            };
            for item in missed {
                let document = source.document(tenant, item)?;
                let mut writing = index.write();
                match document {
                    Some(document) => writing.upsert(&document),
                    None => {
                        writing.remove(item);
                    }
                }
            }
        }
    }

    /// The entry if it is still the one of this load: a tenant may have been forgotten and begun again meanwhile.
    fn own<'a>(entries: &'a mut Entries, tenant: &TenantId, index: &Arc<RwLock<TenantIndex>>) -> Option<&'a mut Entry> {
        entries
            .by_tenant
            .get_mut(tenant)
            .filter(|entry| Arc::ptr_eq(&entry.index, index))
    }

    /// Brings an index up to date after a command was applied; call it when the state shows the change. Does nothing for
    /// a tenant whose index is not here. Changes of one tenant must come in the order of the log.
    pub fn apply(&self, tenant: &TenantId, changes: impl IntoIterator<Item = Change>) {
        let index = {
            let mut entries = self.entries.lock();
            let Some(entry) = entries.by_tenant.get_mut(tenant) else {
                return;
            };
            if let Some(missed) = &mut entry.missed {
                missed.extend(changes.into_iter().map(|change| change.item()));
                return;
            }
            entry.index.clone()
        };
        let bytes = {
            let mut writing = index.write();
            for change in changes {
                match change {
                    Change::Upsert(document) => writing.upsert(&document),
                    Change::Remove(item) => {
                        writing.remove(item);
                    }
                }
            }
            if writing.compact_if_needed() {
                self.compactions.fetch_add(1, Ordering::Relaxed);
            }
            writing.resident_bytes()
        };
        if let Some(entry) = Self::own(&mut self.entries.lock(), tenant, &index) {
            entry.bytes = bytes;
        }
        self.evict(tenant);
    }

    /// Whether a change of this tenant would be used. Lets the caller skip reading documents for nobody.
    pub fn holds(&self, tenant: &TenantId) -> bool {
        self.entries.lock().by_tenant.contains_key(tenant)
    }

    /// Throws an index out: its tenant moved away, or its state was replaced by a snapshot.
    pub fn forget(&self, tenant: &TenantId) {
        self.entries.lock().by_tenant.remove(tenant);
        self.loaded.notify_all();
    }

    /// Throws out the indexes for which `which` holds.
    pub fn forget_where(&self, which: impl Fn(&TenantId) -> bool) {
        self.entries.lock().by_tenant.retain(|tenant, _| !which(tenant));
        self.loaded.notify_all();
    }

    /// Makes room, but never by `keep`, which is in use, nor by one that loads. So one tenant above the budget stays
    /// alone rather than being built again for each of its queries.
    fn evict(&self, keep: &TenantId) {
        let mut entries = self.entries.lock();
        let mut bytes: usize = entries.by_tenant.values().map(|entry| entry.bytes).sum();
        while bytes > self.budget_bytes {
            let oldest = entries
                .by_tenant
                .iter()
                .filter(|(tenant, entry)| *tenant != keep && entry.missed.is_none())
                .min_by_key(|(_, entry)| entry.used)
                .map(|(tenant, _)| tenant.clone());
            let Some(entry) = oldest.and_then(|tenant| entries.by_tenant.remove(&tenant)) else {
                break;
            };
            bytes -= entry.bytes;
            self.evictions.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// For metrics.
    pub fn stats(&self) -> CacheStats {
        let entries = self.entries.lock();
        CacheStats {
            tenants: entries.by_tenant.len(),
            bytes: entries.by_tenant.values().map(|entry| entry.bytes).sum(),
            loads: self.loads.load(Ordering::Relaxed),
            load_failures: self.load_failures.load(Ordering::Relaxed),
            evictions: self.evictions.load(Ordering::Relaxed),
            compactions: self.compactions.load(Ordering::Relaxed),
        }
    }
}

struct LoadGuard<'a> {
    cache: &'a IndexCache,
    tenant: &'a TenantId,
    index: &'a Arc<RwLock<TenantIndex>>,
    done: bool,
}

impl Drop for LoadGuard<'_> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        self.cache.load_failures.fetch_add(1, Ordering::Relaxed);
        let mut entries = self.cache.entries.lock();
        if IndexCache::own(&mut entries, self.tenant, self.index).is_some() {
            entries.by_tenant.remove(self.tenant);
        }
        drop(entries);
        self.cache.loaded.notify_all();
    }
}
