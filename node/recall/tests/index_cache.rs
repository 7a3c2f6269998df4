//! Loading on first use, changes that arrive meanwhile, eviction under a budget.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};

use waggle_memory::id::{MemoryId, TenantId};
use waggle_memory::kind::{Confidence, Kind};
use waggle_memory::tables::Item;
use waggle_memory::time::Millis;
use waggle_recall::cache::{Change, IndexCache, Source};
use waggle_recall::index::Document;

fn tenant(name: &str) -> TenantId {
    name.parse().expect("a tenant id")
}

fn memory(number: u32, text: &str) -> Document {
    let mut id = [0; 16];
    id[..4].copy_from_slice(&number.to_be_bytes());
    Document {
        item: Item::Memory(MemoryId::from_bytes(id)),
        namespace: String::new(),
        project_key: String::new(),
        session: String::new(),
        agent_key: String::new(),
        also_sessions: Vec::new(),
        also_agent_keys: Vec::new(),
        speaker: String::new(),
        kind: Some(Kind::Fact),
        confidence: Confidence::Explicit,
        tags: Vec::new(),
        label: String::new(),
        text: text.to_owned(),
        aliases: Vec::new(),
        valid_from: Millis(0),
        valid_from_stated: false,
        valid_to: None,
        observed_at: Millis(0),
        recorded_at: Millis(0),
        turn_index: None,
        from_turns: Vec::new(),
        vector: None,
        awaits_vector: false,
    }
}

type Shared = Arc<Mutex<BTreeMap<Item, Document>>>;

/// Rows in memory. `on_page` runs before each page is read.
struct Rows<F: Fn(usize)> {
    documents: Shared,
    pages: AtomicUsize,
    on_page: F,
    fails: bool,
}

impl<F: Fn(usize)> Rows<F> {
    fn new(count: u32, on_page: F) -> Self {
        let documents = (0..count)
            .map(|number| memory(number, "wombat"))
            .map(|document| (document.item, document));
        Self {
            documents: Arc::new(Mutex::new(documents.collect())),
            pages: AtomicUsize::new(0),
            on_page,
            fails: false,
        }
    }
}

impl<F: Fn(usize)> Source for Rows<F> {
    type Error = String;

    fn page(&self, _tenant: &TenantId, after: Option<&Document>, limit: usize) -> Result<Vec<Document>, String> {
        (self.on_page)(self.pages.fetch_add(1, Ordering::SeqCst));
        if self.fails {
            return Err("no rows".to_owned());
        }
        let documents = self.documents.lock().expect("not poisoned");
        let rest = documents
            .values()
            .filter(|document| after.is_none_or(|after| document.item > after.item));
        Ok(rest.take(limit).cloned().collect())
    }

    fn document(&self, _tenant: &TenantId, item: Item) -> Result<Option<Document>, String> {
        Ok(self.documents.lock().expect("not poisoned").get(&item).cloned())
    }
}

#[test]
fn an_index_is_loaded_once_for_all_who_ask() {
    let cache = Arc::new(IndexCache::new("test", 8, usize::MAX));
    let rows = Arc::new(Rows::new(2_000, |_| {}));
    let start = Arc::new(Barrier::new(4));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (cache, rows, start) = (cache.clone(), rows.clone(), start.clone());
            std::thread::spawn(move || {
                start.wait();
                let handle = cache.load(&tenant("t"), &*rows).expect("loads");
                assert!(handle.complete);
                assert_eq!(handle.index.read().len(), 2_000);
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    assert_eq!(cache.stats().loads, 1);
}

#[test]
fn what_changes_while_loading_is_read_again() {
    let cache = IndexCache::new("test", 8, usize::MAX);
    let rows: std::rc::Rc<std::cell::OnceCell<Shared>> = std::rc::Rc::default();
    let (gone, fresh) = (memory(3, "").item, memory(9_999, "kiwi"));
    let shared = rows.clone();
    let on_page = |page: usize| {
        let Some(rows) = shared.get().filter(|_| page == 1) else {
            return;
        };
        // The first page, with memory 3 on it, is in the index already.
        let handle = cache.lookup(&tenant("t")).expect("is loading");
        assert!(!handle.complete && handle.index.read().len() == 512);
        let mut rows = rows.lock().expect("not poisoned");
        rows.remove(&gone);
        rows.insert(fresh.item, fresh.clone());
        cache.apply(
            &tenant("t"),
            [Change::Remove(gone), Change::Upsert(Box::new(fresh.clone()))],
        );
    };
    let source = Rows::new(1_000, on_page);
    assert!(rows.set(source.documents.clone()).is_ok());
    let handle = cache.load(&tenant("t"), &source).expect("loads");
    assert!(!handle.index.read().contains(gone));
    assert!(handle.index.read().contains(fresh.item));
    assert_eq!(handle.index.read().len(), 1_000);
}

#[test]
fn changes_reach_a_loaded_index_and_nobody_elses() {
    let cache = IndexCache::new("test", 8, usize::MAX);
    let rows = Rows::new(10, |_| {});
    cache.apply(&tenant("t"), [Change::Upsert(Box::new(memory(50, "early")))]);
    assert!(!cache.holds(&tenant("t")) && cache.lookup(&tenant("t")).is_none());
    let handle = cache.load(&tenant("t"), &rows).expect("loads");
    cache.apply(
        &tenant("t"),
        [
            Change::Upsert(Box::new(memory(50, "later"))),
            Change::Remove(memory(0, "").item),
        ],
    );
    cache.apply(&tenant("u"), [Change::Upsert(Box::new(memory(51, "not here")))]);
    assert_eq!(handle.index.read().len(), 10);
    assert!(handle.index.read().contains(memory(50, "").item));
    cache.forget(&tenant("t"));
    assert!(!cache.holds(&tenant("t")));
}

#[test]
fn the_longest_unused_index_makes_room() {
    let rows = Rows::new(400, |_| {});
    let one = {
        let cache = IndexCache::new("test", 8, usize::MAX);
        cache.load(&tenant("t"), &rows).expect("loads");
        cache.stats().bytes
    };
    let cache = IndexCache::new("test", 8, one * 5 / 2);
    for name in ["a", "b"] {
        cache.load(&tenant(name), &rows).expect("loads");
    }
    assert!(cache.lookup(&tenant("a")).is_some());
    cache.load(&tenant("c"), &rows).expect("loads");
    assert!(cache.holds(&tenant("a")) && cache.holds(&tenant("c")) && !cache.holds(&tenant("b")));
    assert_eq!((cache.stats().evictions, cache.stats().tenants), (1, 2));
    // One tenant above the budget stays: it must not be built again for each query.
    let tiny = IndexCache::new("test", 8, 1);
    tiny.load(&tenant("a"), &rows).expect("loads");
    assert!(tiny.holds(&tenant("a")));
}

#[test]
fn a_failed_load_leaves_nothing_and_may_be_tried_again() {
    let cache = IndexCache::new("test", 8, usize::MAX);
    let mut rows = Rows::new(10, |_| {});
    rows.fails = true;
    assert!(cache.load(&tenant("t"), &rows).is_err());
    assert!(!cache.holds(&tenant("t")));
    rows.fails = false;
    assert!(cache.load(&tenant("t"), &rows).is_ok());
    assert_eq!((cache.stats().loads, cache.stats().load_failures), (2, 1));
}
