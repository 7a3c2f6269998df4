//! Order, bounds and endings of the queue, with the real encoder.

use super::*;

fn pool(threads: usize, queue_texts_max: usize) -> EncoderPool {
    let encoder = Arc::new(Encoder::embedded().expect("the embedded model loads"));
    EncoderPool::start(encoder, threads, queue_texts_max)
}

fn texts(count: usize, text: &str) -> Vec<String> {
    (0..count).map(|index| format!("{text} {index}")).collect()
}

/// Holds the only thread of a pool at its next text for as long as the guard lives.
fn stall(pool: &EncoderPool) -> impl Sized + '_ {
    pool.0.shared.encoder.spare.lock()
}

#[test]
fn a_batch_comes_back_in_order_whatever_thread_did_it() {
    let pool = pool(2, 100);
    let batch = texts(9, "the ferry comes in at");
    let alone: Vec<Embedding> = batch.iter().map(|text| pool.encoder().embed(text)).collect();
    let receiver = pool.submit(Priority::Write, batch).expect("there is room");
    assert_eq!(receiver.wait_blocking(), Ok(alone));
    assert_eq!(pool.queue_length(), 0);
    assert_eq!(pool.estimated_wait(0), Duration::ZERO);
    let empty = pool.submit(Priority::Query, Vec::new()).expect("there is room");
    assert_eq!(empty.wait_blocking(), Ok(Vec::new()));
}

#[test]
fn queries_go_before_writes_that_came_first() {
    let mut queue = Queue::default();
    let batch = Arc::new(Mutex::new(Batch {
        done: Vec::new(),
        missing: 0,
        answer: None,
    }));
    let text = |name: &str| Text {
        batch: Arc::clone(&batch),
        index: 0,
        text: name.to_owned(),
        tokens: 1,
    };
    queue.writes.extend([text("write 1"), text("write 2")]);
    queue.queries.extend([text("query 1"), text("query 2")]);
    let order: Vec<String> = std::iter::from_fn(|| queue.next()).map(|t| t.text).collect();
    assert_eq!(order, ["query 1", "query 2", "write 1", "write 2"]);
}

#[test]
fn a_full_queue_refuses_the_whole_batch_and_says_how_full_it_is() {
    let pool = pool(1, 4);
    let stalled = stall(&pool);
    let first = pool.submit(Priority::Write, texts(3, "first")).expect("there is room");
    let before = pool.estimated_wait(0);
    assert!(before > Duration::ZERO);
    assert!(pool.estimated_wait(40) > before);
    let refused = pool.submit(Priority::Query, texts(4, "second"));
    let refused = refused.expect_err("three or two wait already");
    assert_eq!((refused.refused, refused.queue_texts_max), (4, 4));
    assert!((2..=3).contains(&refused.waiting));
    drop(stalled);
    assert_eq!(first.wait_blocking().map(|done| done.len()), Ok(3));
}

#[test]
fn shutdown_answers_those_who_wait_and_those_who_come_later() {
    let pool = pool(1, 100);
    let stalled = stall(&pool);
    let waiting = pool.submit(Priority::Write, texts(50, "text")).expect("there is room");
    pool.0.close();
    drop(stalled);
    pool.shutdown();
    assert_eq!(waiting.wait_blocking(), Err(PoolStopped));
    let late = pool.submit(Priority::Query, texts(1, "late")).expect("nothing is full");
    assert_eq!(late.wait_blocking(), Err(PoolStopped));
    assert_eq!(pool.queue_length(), 0);
    pool.shutdown();
}

#[test]
fn a_receiver_that_went_away_costs_no_encoding() {
    let pool = pool(1, 100);
    let stalled = stall(&pool);
    let gone = pool
        .submit(Priority::Write, texts(50, "nobody wants this"))
        .expect("there is room");
    let last = pool
        .0
        .shared
        .queue
        .lock()
        .writes
        .back()
        .map(|text| Arc::clone(&text.batch));
    let batch = last.expect("one thread cannot hold all of them");
    drop(gone);
    drop(stalled);
    let next = pool
        .submit(Priority::Write, texts(1, "but this"))
        .expect("there is room");
    assert_eq!(next.wait_blocking().map(|done| done.len()), Ok(1));
    // At most the text that was in hand when the receiver went.
    assert!(batch.lock().done.iter().flatten().count() <= 1);
}

#[test]
fn the_threads_end_with_the_last_handle() {
    let pool = pool(2, 100);
    let shared = Arc::clone(&pool.0.shared);
    let threads = std::mem::take(&mut *pool.0.threads.lock());
    let second = pool.clone();
    drop(pool);
    assert!(!shared.queue.lock().closed);
    drop(second);
    for thread in threads {
        thread.join().expect("an encoder thread ends in order");
    }
}
