//! Hand-off of a whole transcript: check everything, store what is new, extract from what nobody extracted from. Every
//! step is a command of its own that changes nothing when it is repeated, so a hand-off that ended anywhere is completed
//! by sending it again.

mod extraction;
mod input;
mod sequence;

use std::sync::Arc;
use std::time::Duration;

use waggle_memory::command::{Command, NewTurn};
use waggle_memory::handoff::{NewMessage, StoreMessages, Windows, windows};
use waggle_memory::memory::VectorDraft;
use waggle_memory::outcome::Outcome;
use waggle_memory::scope::Scope;
use waggle_proto::wire::{self, HandoffReply, HandoffRequest};

use crate::call::Call;
use crate::engine::Engine;
use crate::error::CallError;
use crate::plan;
use input::Given;
use sequence::Sequence;

/// Text of the messages that one command stores. A longer message is a command of its own.
const BATCH_BYTES_MAX: usize = 1024 * 1024;
/// Messages that one command stores.
const BATCH_MESSAGES_MAX: usize = 500;
/// Longest time of one call, whatever the caller asks for.
const TIME_MAX: Duration = Duration::from_secs(50);

/// One hand-off on its way.
struct Handoff {
    call: Call,
    scope: Scope,
    /// On the node's monotonic clock.
    until: Duration,
    reply: HandoffReply,
}

pub(super) async fn handle(engine: &Arc<Engine>, request: HandoffRequest) -> Result<HandoffReply, CallError> {
    let context = request.context.map(|context| wire::CallContext {
        // Several commands belong to this call, and each is harmless to repeat by what it carries.
        request_id: String::new(),
        ..context
    });
    let call = Call::new(engine, context)?;
    let scope = wire::scope_of(request.scope)?;
    let now = engine.clock.wall();
    let (messages, repeated) = input::checked(request.messages, request.first_position, now)?;
    let time = Duration::from_millis(request.time_ms).min(TIME_MAX);
    let mut handoff = Handoff {
        until: engine.clock.monotonic().saturating_add(time),
        call,
        scope,
        reply: HandoffReply {
            records_skipped: repeated,
            ..HandoffReply::default()
        },
    };
    handoff.call.linearize().await?;
    let continues = !handoff.scope.session_id.is_empty() || request.first_position > 0;
    let mut sequence = Sequence::read(&handoff.call, &handoff.scope, &messages, continues).await?;
    let boundary = input::boundary(request.tool_boundary_splits_blocks);
    let found = windows(sequence.roles(), boundary);
    handoff.reply.unpaired_trailing_blocks = count(found.unpaired_blocks());
    handoff.reply.assistant_blocks_skipped = count(found.skipped.len());
    if request.dry_run {
        handoff.foresee(&sequence, &found);
        return Ok(handoff.reply);
    }
    sequence.assign_pairs(&handoff.call, &found).await?;
    if handoff.store(&mut sequence, messages).await? {
        handoff.extract(&sequence, &found).await?;
    }
    if handoff.reply.messages_left > 0 {
        handoff.reply.logical_turns_left = count(sequence.open_pairs(&found).count());
    }
    Ok(handoff.reply)
}

impl Handoff {
    fn time_is_up(&self) -> bool {
        self.call.engine.clock.monotonic() >= self.until
    }

    /// What a hand-off would do, without what only extraction can tell.
    fn foresee(&mut self, sequence: &Sequence, found: &Windows) {
        let new = sequence.new_positions().count();
        self.reply.records_written = count(new);
        self.reply.records_skipped += count(sequence.given() - new);
        self.reply.logical_turns = count(sequence.open_pairs(found).count());
    }

    /// Stores the messages that are new, batch by batch. False when the time did not suffice.
    async fn store(&mut self, sequence: &mut Sequence, messages: Vec<Given>) -> Result<bool, CallError> {
        let new: Vec<usize> = sequence.new_positions().collect();
        self.reply.records_skipped += count(sequence.given() - new.len());
        let mut messages: Vec<Option<Given>> = messages.into_iter().map(Some).collect();
        let mut rest = new.as_slice();
        while !rest.is_empty() {
            if self.time_is_up() {
                self.reply.messages_left = count(rest.len());
                return Ok(false);
            }
            let size = |at: &usize| {
                messages
                    .get(*at)
                    .and_then(Option::as_ref)
                    .map_or(0, |given| given.text.len())
            };
            let (batch, later) = rest.split_at(batch_length(rest.iter().map(size)));
            rest = later;
            let taken: Vec<(usize, Given)> = batch
                .iter()
                .filter_map(|at| messages.get_mut(*at).and_then(Option::take).map(|given| (*at, given)))
                .collect();
            self.store_batch(sequence, taken).await?;
        }
        Ok(true)
    }

    async fn store_batch(&mut self, sequence: &mut Sequence, batch: Vec<(usize, Given)>) -> Result<(), CallError> {
        let positions: Vec<(usize, usize)> = batch.iter().map(|(at, given)| (*at, given.index)).collect();
        let messages = batch
            .into_iter()
            .map(|(at, given)| NewMessage {
                identity: given.identity,
                content: given.content,
                pair: sequence.pair_of(at),
                turn: NewTurn {
                    id: plan::new_turn_id(),
                    role: given.role,
                    text: given.text,
                    observed_at: given.observed_at,
                    // A transcript may be long: it is committed at once, and the vectors follow.
                    vector: VectorDraft::Pending,
                },
            })
            .collect();
        let command = StoreMessages {
            tenant: self.call.tenant.clone(),
            scope: self.scope.clone(),
            namespace: super::store_memory::namespace_of(&self.scope.project),
            messages,
        };
        let written = self.call.propose(Command::StoreMessages(Box::new(command))).await?;
        match written.outcome {
            Outcome::MessagesStored { turns, written } => {
                self.reply.records_written += written;
                self.reply.records_skipped += count(turns.len()).saturating_sub(written);
                for ((at, _), turn) in positions.iter().zip(turns) {
                    sequence.stored(*at, turn);
                }
                Ok(())
            }
            // Checked before the first write; only a hand-off at the same moment gets here.
            Outcome::MessageReused { position } => {
                let index = usize::try_from(position).ok().and_then(|at| positions.get(at));
                Err(CallError::message_id_reused(index.map_or(0, |(_, index)| *index)))
            }
            _ => Err(CallError::halted(
                "store messages",
                &"the outcome is of another command",
            )),
        }
    }

    /// Extracts from the logical turns that hold something that nobody extracted from.
    async fn extract(&mut self, sequence: &Sequence, found: &Windows) -> Result<(), CallError> {
        let mut open = sequence.open_pairs(found);
        while let Some(pair) = open.next() {
            if self.time_is_up() {
                self.reply.logical_turns_left = count(1 + open.count());
                return Ok(());
            }
            let members = sequence.turns_of(pair);
            let read = extraction::extract_pair(&self.call, &self.scope, &members).await?;
            self.reply.logical_turns += u32::from(read.done);
            self.reply.memories_created += read.created;
            self.reply.memories_reused += read.reused;
            self.reply.conflicts += read.conflicts;
            self.reply.over_limit += u32::from(read.over_limit);
            self.reply.redactions += read.redactions;
        }
        Ok(())
    }
}

/// How many of the next messages, given by their sizes, one command takes: at least one.
fn batch_length(sizes: impl Iterator<Item = usize>) -> usize {
    let mut bytes = 0;
    let fits = sizes.take(BATCH_MESSAGES_MAX).take_while(|size| {
        bytes += size;
        bytes <= BATCH_BYTES_MAX
    });
    fits.count().max(1)
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_bounded_in_bytes_and_messages_and_takes_at_least_one() {
        let length = |sizes: &[usize]| batch_length(sizes.iter().copied());
        assert_eq!(length(&[10, 20, 30]), 3);
        assert_eq!(length(&[BATCH_BYTES_MAX, 1]), 1);
        assert_eq!(length(&[BATCH_BYTES_MAX + 1, 1]), 1);
        assert_eq!(length(&[BATCH_BYTES_MAX - 1, 1, 1]), 2);
        assert_eq!(length(&[1; 2 * BATCH_MESSAGES_MAX]), BATCH_MESSAGES_MAX);
    }
}
