//! A node ends although vectors are still to come, and leaves them to the next start.

#![allow(clippy::unwrap_used, reason = "a test")]

mod support;

use support::Hosted;
use waggle_memory::tables::typed::TenantRows;
use waggle_proto::wire::memory_service_client::MemoryServiceClient;
use waggle_proto::wire::{ObserveRequest, Scope};
use waggle_store::{Database, Start, StoreOptions};

/// More text than the encoder reads while it is stored.
const TURNS: usize = 12;
const TURN_BYTES: usize = 500_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_does_not_wait_for_long_texts_that_are_being_read() {
    let hosted = Hosted::start().await;
    let mut memory = MemoryServiceClient::new(hosted.channel.clone());
    for number in 0..TURNS {
        let sentence = format!("entry {number} of the log of the harbour says that ships came and went. ");
        let request = ObserveRequest {
            context: Some(hosted.context("")),
            scope: Some(Scope {
                project: "harbour".to_owned(),
                ..Scope::default()
            }),
            user_message: sentence.repeat(TURN_BYTES / sentence.len()),
            ..ObserveRequest::default()
        };
        memory.observe(request).await.unwrap();
    }
    drop(memory);
    let shard = hosted.shard();
    let folder = hosted.end_and_keep().await;

    // Nothing was finished on the way out, and nothing is forgotten: the next start finds what is left, at least the text
    // that came last.
    let store = StoreOptions::development(Start::Any);
    let database = Database::open(&folder.path().join("store"), &store).unwrap();
    let tenant = "acme".parse().unwrap();
    let waiting = database
        .read(shard, |tables| {
            TenantRows::new(tables, &tenant).awaiting_vectors(None, 100).len()
        })
        .unwrap();
    assert!(waiting > 0, "the stop has waited for the encoder");
}
