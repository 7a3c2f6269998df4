//! The scripted answers about the past.

use waggle_proto::wire::history_service_server::HistoryService;

use super::*;

#[tonic::async_trait]
impl HistoryService for Shared {
    async fn history(&self, request: Request<HistoryRequest>) -> Answer<HistoryReply> {
        let request = request.into_inner();
        self.0.enter(request.context)?;
        if request.id == uuid_bytes(99) {
            return Ok(Response::new(HistoryReply {
                tombstone: Some(tombstone(99)),
                ..HistoryReply::default()
            }));
        }
        let version = |number: u32| Version {
            version: number,
            recorded_at: T0 + i64::from(number),
            author: format!("key:k{number}"),
            reason: "update".to_owned(),
            changed: vec!["content".to_owned()],
            label: "Memory 1".to_owned(),
            content: format!("text {number} {}", "x".repeat(200)),
            kind: 1,
            ..Version::default()
        };
        Ok(Response::new(HistoryReply {
            memory: Some(memory(1, 40)),
            redirected_from: uuid_bytes(8),
            versions: (1..=30).rev().map(version).collect(),
            evidence: (0..10)
                .map(|n| Evidence {
                    id: uuid_bytes(200 + n),
                    text: format!("said {n}"),
                    ..Evidence::default()
                })
                .collect(),
            conflicts: vec![link(70, 1, 2, 2)],
            related: self.0.memories.lock().expect("memories").clone(),
            links: vec![link(70, 1, 2, 2)],
            tombstone: None,
            more: false,
        }))
    }

    async fn timeline(&self, request: Request<TimelineRequest>) -> Answer<TimelineReply> {
        let request = request.into_inner();
        self.0.enter(request.context)?;
        let items = (0..u64::from(request.limit)).map(|number| TimelineItem {
            kind: "node_created".to_owned(),
            at: T0,
            label: format!("Memory {number}"),
            memory_id: uuid_bytes(number),
            author: "key:k".to_owned(),
            number,
            ..TimelineItem::default()
        });
        Ok(Response::new(TimelineReply {
            items: items.collect(),
            until: request.until.unwrap_or(T0),
            more: false,
        }))
    }

    async fn list_conflicts(&self, request: Request<ListConflictsRequest>) -> Answer<ListConflictsReply> {
        let request = request.into_inner();
        self.0.enter(request.context)?;
        let conflicts = (0..u64::from(request.limit)).map(|number| Conflict {
            link: Some(link(300 + number, 1, 2, 2)),
            source: Some(memory(1, 40)),
            target: Some(memory(2, 40)),
        });
        Ok(Response::new(ListConflictsReply {
            conflicts: conflicts.collect(),
            until: T0,
            more: false,
        }))
    }

    async fn diff(&self, request: Request<DiffRequest>) -> Answer<DiffReply> {
        let request = request.into_inner();
        self.0.enter(request.context.clone())?;
        let reply = DiffReply {
            since: request.since,
            until: request.until.unwrap_or(T0 + 5),
            added: self.0.memories.lock().expect("memories").clone(),
            deleted: vec![tombstone(99)],
            contradictions: vec![link(70, 1, 2, 2)],
            counts: Some(DiffCounts {
                deleted: 1,
                ..DiffCounts::default()
            }),
            ..DiffReply::default()
        };
        self.0.diffs.lock().expect("diffs").push(request);
        Ok(Response::new(reply))
    }

    async fn canonicalize(&self, request: Request<CanonicalizeRequest>) -> Answer<CanonicalizeReply> {
        let request = request.into_inner();
        self.0.enter(request.context)?;
        Ok(Response::new(CanonicalizeReply {
            memory: Some(memory(1, 40)),
            merged: request.ids,
            links_moved: 2,
            ..CanonicalizeReply::default()
        }))
    }

    async fn clear(&self, request: Request<ClearRequest>) -> Answer<ClearReply> {
        let request = request.into_inner();
        self.0.enter(request.context)?;
        if !request.confirm && !request.dry_run {
            return Err(failure("confirm_required", Family::Rejected));
        }
        Ok(Response::new(ClearReply {
            memories_by_kind: vec![0, 3, 0, 0, 0, 1],
            turns: 7,
            dry_run: request.dry_run,
            receipt: if request.dry_run {
                String::new()
            } else {
                "cleared-1".to_owned()
            },
            ..ClearReply::default()
        }))
    }
}

fn tombstone(number: u64) -> Tombstone {
    Tombstone {
        id: uuid_bytes(number),
        deleted_at: T0,
        author: "key:k".to_owned(),
        receipt: format!("erased-{number}"),
        kind: 5,
        content_hash: vec![7; 16],
        ..Tombstone::default()
    }
}
