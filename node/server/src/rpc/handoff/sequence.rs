//! The messages of a hand-off as a part of their session: which of them are stored, what stands before them, and which
//! logical turns still hold something to extract.

use waggle_memory::handoff::{LogicalTurn, Windows};
use waggle_memory::id::{PairId, TurnId};
use waggle_memory::kind::Role;
use waggle_memory::scope::Scope;
use waggle_memory::tables::typed::TenantRows;

use super::Given;
use crate::call::Call;
use crate::error::CallError;
use crate::plan;

/// Messages that one read looks up, so that a long transcript does not hold a reading thread.
const LOOKUPS_MAX: usize = 5_000;
/// How many stored turns before the first message are looked at for a block that goes on.
const TURNS_BEFORE_MAX: u32 = 1_000;

/// One message of the sequence.
#[derive(Clone, Copy, Debug)]
struct Place {
    role: Role,
    /// None: not stored yet.
    turn: Option<TurnId>,
    extracted: bool,
    pair: Option<PairId>,
}

/// Stored turns that the transcript goes on from, then its messages.
#[derive(Debug)]
pub(super) struct Sequence {
    places: Vec<Place>,
    /// How many of the places stand before the first message.
    before: usize,
}

impl Sequence {
    /// Looks every message up. One that says something else than the stored one with its identity is refused.
    pub(super) async fn read(
        call: &Call,
        scope: &Scope,
        messages: &[Given],
        continues: bool,
    ) -> Result<Self, CallError> {
        let project = scope.project_key();
        let mut given = Vec::with_capacity(messages.len());
        for part in messages.chunks(LOOKUPS_MAX) {
            let asked: Vec<_> = part
                .iter()
                .map(|one| (one.index, one.identity, one.content, one.role))
                .collect();
            let (project, session) = (project.clone(), scope.session_id.clone());
            let found = call
                .read(move |_, rows| {
                    asked
                        .into_iter()
                        .map(|(index, identity, content, role)| {
                            let turn = rows.message(&project, &session, identity);
                            let message = turn.and_then(|turn| rows.message_of(turn));
                            match message {
                                Some(message) if message.content != content => Err(CallError::message_id_reused(index)),
                                _ => Ok(Place {
                                    role,
                                    turn: message.and(turn),
                                    extracted: message.is_some_and(|message| message.extracted),
                                    pair: None,
                                }),
                            }
                        })
                        .collect::<Result<Vec<Place>, CallError>>()
                })
                .await?;
            given.extend(found);
        }
        let first = given
            .iter()
            .find(|place| matches!(place.role, Role::User | Role::Assistant));
        let mut places = match first.filter(|_| continues).copied() {
            Some(first) => {
                let start = given.first().and_then(|place| place.turn);
                let session = scope.session_id.clone();
                call.read(move |_, rows| Ok(places_before(rows, &project, &session, start, first.role)))
                    .await?
            }
            None => Vec::new(),
        };
        let before = places.len();
        places.extend(given);
        Ok(Self { places, before })
    }

    /// Roles in order, what stands before included.
    pub(super) fn roles(&self) -> impl Iterator<Item = Role> {
        self.places.iter().map(|place| place.role)
    }

    /// How many messages the hand-off brought.
    pub(super) fn given(&self) -> usize {
        self.places.len() - self.before
    }

    /// Messages that are not stored, by their position among those that the hand-off brought.
    pub(super) fn new_positions(&self) -> impl Iterator<Item = usize> {
        let given = self.places.iter().skip(self.before).enumerate();
        given.filter(|(_, place)| place.turn.is_none()).map(|(at, _)| at)
    }

    /// Logical turns with something that nobody extracted from.
    pub(super) fn open_pairs<'a>(&'a self, found: &'a Windows) -> impl Iterator<Item = &'a LogicalTurn> {
        found.pairs.iter().filter(|pair| {
            let mut members = pair.user.iter().chain(&pair.assistant);
            members.any(|at| self.places.get(*at).is_some_and(|place| !place.extracted))
        })
    }

    /// The turns of a logical turn that are to be read, user block first.
    pub(super) fn turns_of(&self, pair: &LogicalTurn) -> Vec<TurnId> {
        let members = pair.user.iter().chain(&pair.assistant);
        let open = members
            .filter_map(|at| self.places.get(*at))
            .filter(|place| !place.extracted);
        open.filter_map(|place| place.turn).collect()
    }

    /// Gives the messages of a logical turn one pair id: that of its first stored message, else a new one.
    pub(super) async fn assign_pairs(&mut self, call: &Call, found: &Windows) -> Result<(), CallError> {
        for pair in &found.pairs {
            let members: Vec<usize> = pair.user.iter().chain(&pair.assistant).copied().collect();
            let turn_at = |at: &usize| self.places.get(*at).and_then(|place| place.turn);
            if members.iter().all(|at| turn_at(at).is_some()) {
                continue;
            }
            let known = match members.iter().find_map(turn_at) {
                Some(turn) => {
                    call.read(move |_, rows| Ok(rows.turn(turn).map(|turn| turn.pair)))
                        .await?
                }
                None => None,
            };
            let id = known.unwrap_or_else(plan::new_pair_id);
            for at in members {
                if let Some(place) = self.places.get_mut(at) {
                    place.pair = Some(id);
                }
            }
        }
        Ok(())
    }

    /// The pair of a message that is to be stored; alone without a logical turn.
    pub(super) fn pair_of(&self, position: usize) -> PairId {
        let place = self.places.get(self.before + position);
        place.and_then(|place| place.pair).unwrap_or_else(plan::new_pair_id)
    }

    /// Notes that a message is stored now.
    pub(super) fn stored(&mut self, position: usize, turn: TurnId) {
        if let Some(place) = self.places.get_mut(self.before + position) {
            place.turn = Some(turn);
        }
    }
}

/// The block that the transcript goes on from, oldest first: before an assistant's message the assistant block and the
/// user block that it answers, before a user's message the user block that nobody has answered. Turns of other calls end
/// it: those calls extracted from them.
fn places_before(rows: TenantRows<'_>, project: &str, session: &str, start: Option<TurnId>, role: Role) -> Vec<Place> {
    let end = match start {
        Some(turn) => rows.turn(turn).map_or(0, |turn| turn.turn_index),
        None => rows.session(project, session).map_or(0, |session| session.turn_count),
    };
    let mut found = Vec::new();
    let mut users = 0;
    for index in (end.saturating_sub(TURNS_BEFORE_MAX)..end).rev() {
        let turn = rows.turn_at(project, session, index).and_then(|id| rows.turn(id));
        let Some(turn) = turn else { break };
        let Some(message) = rows.message_of(turn.id) else { break };
        let goes_on = match turn.role {
            Role::Tool | Role::System => true,
            Role::User => role == Role::Assistant || !message.extracted,
            Role::Assistant => role == Role::Assistant && users == 0,
        };
        if !goes_on {
            break;
        }
        users += usize::from(turn.role == Role::User);
        found.push(Place {
            role: turn.role,
            turn: Some(turn.id),
            extracted: message.extracted,
            pair: None,
        });
    }
    if users == 0 {
        // Without a user block nothing goes on.
        found.clear();
    }
    found.reverse();
    found
}
