//! clear_session, clear_project, clear_all: erase a scope, in steps that are commands of their own. Every step has a
//! request id of its own, made from the caller's: a call that was cut off goes on where it stopped when it is repeated,
//! and its answer counts the earlier steps, too. Works on a full disk.

use std::collections::BTreeSet;
use std::sync::Arc;

use waggle_config::limits::CLEAR_ROWS_PER_STEP;
use waggle_memory::clear::{Clear, ClearTarget, Cleared};
use waggle_memory::command::Command;
use waggle_memory::id::LinkId;
use waggle_memory::outcome::Outcome;
use waggle_memory::scope::{Scope, name_key};
use waggle_memory::tables::typed::TenantRows;
use waggle_proto::wire::clear_request::What;
use waggle_proto::wire::{ClearReply, ClearRequest};

use crate::call::Call;
use crate::engine::Engine;
use crate::error::CallError;

/// Rows that one step touches.
const ROWS_PER_STEP: u32 = CLEAR_ROWS_PER_STEP as u32;
/// Most steps of one call; whoever needs more repeats it.
const STEPS_MAX: u32 = 1_000_000;
/// Memories and evidence read at once while counting, and links at one memory that are counted.
const PAGE: usize = 500;

pub(super) async fn handle(engine: &Arc<Engine>, request: ClearRequest) -> Result<ClearReply, CallError> {
    let call = Call::new(engine, request.context.clone())?;
    let target = target_of(&request)?;
    if request.dry_run || !request.confirm {
        call.linearize().await?;
        let counted = target.clone();
        let counts = call.read(move |_, rows| Ok(counts(rows, &counted))).await?;
        if request.dry_run {
            return Ok(reply(counts, true));
        }
        return Err(CallError::confirm_required(unconfirmed(&counts)));
    }
    let mut sum = Cleared::default();
    let mut from = None;
    for number in 0..STEPS_MAX {
        let command = Clear {
            tenant: call.tenant.clone(),
            target: target.clone(),
            from: from.take(),
            rows_max: ROWS_PER_STEP,
        };
        let written = call.step(number).propose_always(Command::Clear(command)).await?;
        let Outcome::Cleared(done) = written.outcome else {
            return Err(CallError::halted("erase a scope", &"the outcome is of another command"));
        };
        from = done.next.clone();
        add(&mut sum, *done);
        if from.is_none() {
            return Ok(reply(sum, false));
        }
    }
    Err(CallError::unavailable(
        "the scope is larger than one call erases; repeat the call to erase the rest",
        std::time::Duration::from_secs(1),
    ))
}

fn target_of(request: &ClearRequest) -> Result<ClearTarget, CallError> {
    let named = |field: &str, value: &str| {
        if value.trim().is_empty() {
            return Err(CallError::invalid(field, "must not be blank"));
        }
        if value.len() > Scope::FIELD_BYTES_MAX || value.contains('\0') {
            let why = format!("at most {} bytes, no NUL", Scope::FIELD_BYTES_MAX);
            return Err(CallError::invalid(field, why));
        }
        Ok(value.to_owned())
    };
    Ok(match request.what() {
        What::All => ClearTarget::All,
        What::Project => ClearTarget::Project(named("project", &request.project)?),
        What::Session => ClearTarget::Session {
            project: match request.project.trim() {
                "" => None,
                project => Some(named("project", project)?),
            },
            session: named("session_id", &request.session_id)?,
        },
        What::Unspecified => return Err(CallError::invalid("what", "must be named")),
    })
}

fn add(sum: &mut Cleared, step: Cleared) {
    for (sum, count) in sum.memories_by_kind.iter_mut().zip(step.memories_by_kind) {
        *sum += count;
    }
    sum.links += step.links;
    sum.turns += step.turns;
    sum.sessions += step.sessions;
    sum.evidence += step.evidence;
    sum.receipt = step.receipt;
}

fn reply(counts: Cleared, dry_run: bool) -> ClearReply {
    ClearReply {
        memories_by_kind: counts.memories_by_kind.to_vec(),
        links: counts.links,
        turns: counts.turns,
        sessions: counts.sessions,
        evidence: counts.evidence,
        dry_run,
        receipt: counts.receipt,
    }
}

fn unconfirmed(counts: &Cleared) -> String {
    format!(
        "this would erase {} memories, {} edges, {} transcript turns and {} sessions for good; repeat with \
         confirm: true to do it, or with dry_run: true to see the counts by kind",
        counts.memories_by_kind.iter().sum::<u64>(),
        counts.links,
        counts.turns,
        counts.sessions
    )
}

/// What a clearing would erase: from counters, but for a session, whose memories are looked at.
fn counts(rows: TenantRows<'_>, target: &ClearTarget) -> Cleared {
    let counters = match target {
        ClearTarget::All => rows.state().counters,
        ClearTarget::Project(name) => rows.project(name).unwrap_or_default().counters,
        ClearTarget::Session { project, session } => return counts_of_session(rows, project.as_deref(), session),
    };
    Cleared {
        memories_by_kind: counters.memories_by_kind,
        links: counters.links_total(),
        turns: counters.turns,
        sessions: counters.sessions,
        ..Cleared::default()
    }
}

fn counts_of_session(rows: TenantRows<'_>, project: Option<&str>, session: &str) -> Cleared {
    let keys = match project {
        Some(name) => vec![name_key(name)],
        None => rows.project_keys("", usize::MAX),
    };
    let mut counts = Cleared::default();
    let mut links: BTreeSet<LinkId> = BTreeSet::new();
    for key in keys {
        let Some(row) = rows.session(&key, session) else {
            continue;
        };
        counts.sessions += 1;
        counts.turns += u64::from(row.turn_count);
        let mut after = None;
        loop {
            let page = rows.memories_of_project(&key, after, PAGE);
            for (_, id) in &page {
                let evidence = rows.evidence(*id, PAGE);
                let of_session = evidence.iter().filter(|(_, e)| e.scope.session_id == session).count();
                let Some(memory) = rows.memory(*id).filter(|_| of_session > 0) else {
                    continue;
                };
                if of_session < evidence.len() {
                    counts.evidence += u64::try_from(of_session).unwrap_or(u64::MAX);
                    continue;
                }
                let kind = counts.memories_by_kind.get_mut(usize::from(memory.kind.number()));
                if let Some(count) = kind {
                    *count += 1;
                }
                links.extend(rows.links_at(*id, PAGE).iter().map(|link| link.id));
            }
            if page.len() < PAGE {
                break;
            }
            after = page.last().copied();
        }
    }
    counts.links = u64::try_from(links.len()).unwrap_or(u64::MAX);
    counts
}
