//! One step of erasing a scope: project after project, first memories, then sessions with their turns. A step ends when
//! it has touched as many rows as the command allows, and says where the next one goes on.

use std::collections::BTreeSet;

use super::delete::{erase, unname};
use super::handoff::forget;
use super::transaction::Transaction;
use crate::clear::{Clear, ClearPhase, ClearPoint, ClearTarget, Cleared};
use crate::id::MemoryId;
use crate::memory::Memory;
use crate::outcome::Outcome;
use crate::scope::name_key;
use crate::statement::Fingerprint;
use crate::tables::{Item, TenantKey};
use crate::transcript::Session;

/// Memories, turns or sessions read at once.
const PAGE: usize = 64;

pub(super) fn apply_clear(tx: &mut Transaction<'_>, command: &Clear) -> Outcome {
    let mut step = Step {
        target: &command.target,
        left: i64::from(command.rows_max.clamp(1, Clear::ROWS_MAX)),
        done: Cleared::default(),
    };
    let mut at = match &command.from {
        Some(point) => Some(point.clone()),
        None => first_point(tx, &command.target),
    };
    while let Some(point) = at.take_if(|_| step.left > 0) {
        at = match point.phase {
            ClearPhase::Memories(after) => Some(step.memories(tx, point.project, after)),
            ClearPhase::Turns => step.turns(tx, point.project),
        };
    }
    let mut done = step.done;
    done.receipt = tx.receipt_of_step(&[format!("{:?}", command.target).as_bytes()]);
    done.next = at;
    Outcome::Cleared(Box::new(done))
}

fn first_point(tx: &Transaction<'_>, target: &ClearTarget) -> Option<ClearPoint> {
    let project = match target {
        ClearTarget::Project(name)
        | ClearTarget::Session {
            project: Some(name), ..
        } => Some(name_key(name)),
        ClearTarget::All | ClearTarget::Session { project: None, .. } => tx.rows().project_keys("", 1).pop(),
    };
    Some(ClearPoint {
        project: project?,
        phase: ClearPhase::Memories(None),
    })
}

struct Step<'a> {
    target: &'a ClearTarget,
    /// Rows that may still be touched; below 1 the step ends.
    left: i64,
    done: Cleared,
}

impl Step<'_> {
    fn memories(
        &mut self,
        tx: &mut Transaction<'_>,
        project: String,
        mut after: Option<(Fingerprint, MemoryId)>,
    ) -> ClearPoint {
        // A session that a project does not know has no evidence there.
        if let ClearTarget::Session { session, .. } = self.target
            && tx.rows().session(&project, session).is_none()
        {
            self.left -= 1;
            let phase = ClearPhase::Turns;
            return ClearPoint { project, phase };
        }
        let page = tx.rows().memories_of_project(&project, after, PAGE);
        let is_last = page.len() < PAGE;
        let count = page.len();
        let mut visited = 0;
        for place in page {
            if self.left <= 0 {
                break;
            }
            if let Some(memory) = tx.rows().memory(place.1) {
                self.memory(tx, &memory);
            }
            after = Some(place);
            visited += 1;
        }
        let phase = if is_last && visited == count {
            ClearPhase::Turns
        } else {
            ClearPhase::Memories(after)
        };
        ClearPoint { project, phase }
    }

    fn memory(&mut self, tx: &mut Transaction<'_>, memory: &Memory) {
        match self.target {
            ClearTarget::All | ClearTarget::Project(_) => self.erase(tx, memory),
            ClearTarget::Session { session, .. } => self.memory_of_session(tx, memory, session),
        }
    }

    fn erase(&mut self, tx: &mut Transaction<'_>, memory: &Memory) {
        let tombstone = erase(tx, memory);
        let kind = self.done.memories_by_kind.get_mut(usize::from(memory.kind.number()));
        if let Some(count) = kind {
            *count += 1;
        }
        self.done.links += u64::from(tombstone.deleted_links);
        let rows = [
            4,
            memory.version.min(Memory::VERSIONS_KEPT_MAX),
            memory.evidence_count.min(Memory::EVIDENCE_KEPT_MAX),
            tombstone.deleted_links.saturating_mul(4),
        ];
        self.left -= rows.into_iter().map(i64::from).sum::<i64>();
    }

    /// A memory that rests on the session alone goes; another one loses only that evidence, and its name if it bore it.
    fn memory_of_session(&mut self, tx: &mut Transaction<'_>, memory: &Memory, session: &str) {
        let most = usize::try_from(Memory::EVIDENCE_KEPT_MAX)
            .unwrap_or(usize::MAX)
            .saturating_add(1);
        let evidence = tx.rows().evidence(memory.id, most);
        self.left -= i64::try_from(evidence.len()).unwrap_or(i64::MAX).saturating_add(1);
        let of_session = |scope: &crate::scope::Scope| scope.session_id == session;
        // Newest first: the last one is the oldest that stays.
        let stays = evidence
            .iter()
            .rfind(|(_, e)| !of_session(&e.scope))
            .map(|(_, e)| e.scope.clone());
        let Some(stays) = stays else {
            if evidence.iter().any(|(_, e)| of_session(&e.scope)) {
                self.erase(tx, memory);
            }
            return;
        };
        let mut turns = BTreeSet::new();
        for (number, lost) in evidence.iter().filter(|(_, e)| of_session(&e.scope)) {
            tx.delete(TenantKey::Evidence(memory.id, *number));
            turns.extend(lost.turn.as_ref().map(|span| span.turn));
            self.done.evidence += 1;
        }
        unname(tx, &turns, memory.id);
        if of_session(&memory.scope) {
            let mut renamed = memory.clone();
            renamed.scope.session_id = stays.session_id;
            renamed.scope.agent_id = stays.agent_id;
            tx.rewrite_memory(renamed);
        }
    }

    fn turns(&mut self, tx: &mut Transaction<'_>, project: String) -> Option<ClearPoint> {
        let sessions: Vec<Session> = match self.target {
            ClearTarget::Session { session, .. } => tx.rows().session(&project, session).into_iter().collect(),
            ClearTarget::All | ClearTarget::Project(_) => tx.rows().sessions(Some(&project), PAGE),
        };
        for session in &sessions {
            if self.left <= 0 || !self.session(tx, &project, session) {
                return Some(ClearPoint {
                    project,
                    phase: ClearPhase::Turns,
                });
            }
        }
        if sessions.len() == PAGE {
            return Some(ClearPoint {
                project,
                phase: ClearPhase::Turns,
            });
        }
        self.after_project(tx, &project)
    }

    /// Erases a session's turns from the first on, then the session; false while turns are left.
    fn session(&mut self, tx: &mut Transaction<'_>, project: &str, session: &Session) -> bool {
        while self.left > 0 {
            let turns = tx.rows().turns_of_session(project, &session.session_id, PAGE);
            if turns.is_empty() {
                if !session.session_id.is_empty() {
                    tx.count(project, |c| c.sessions = c.sessions.saturating_sub(1));
                    self.done.sessions += 1;
                }
                tx.delete(TenantKey::Session(project.to_owned(), session.session_id.clone()));
                self.left -= 1;
                return true;
            }
            for (index, id) in turns {
                self.turn(tx, project, &session.session_id, index, id);
            }
        }
        false
    }

    fn turn(&mut self, tx: &mut Transaction<'_>, project: &str, session: &str, index: u32, id: crate::id::TurnId) {
        let turn = tx.rows().turn(id);
        let bytes = turn.as_ref().map_or(0, |turn| turn.text.len());
        if let Some(turn) = &turn {
            forget(tx, turn);
        }
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        tx.count(project, |c| {
            c.turns = c.turns.saturating_sub(1);
            c.text_bytes = c.text_bytes.saturating_sub(bytes);
        });
        tx.remove_vector(Item::Turn(id));
        tx.delete(TenantKey::Turn(id));
        tx.delete(TenantKey::TurnAt(project.to_owned(), session.to_owned(), index));
        tx.changed(Item::Turn(id));
        self.done.turns += 1;
        self.left -= 3;
    }

    /// The next project; after the last one of all, the labels of agents go, too.
    fn after_project(&mut self, tx: &mut Transaction<'_>, project: &str) -> Option<ClearPoint> {
        let one_project = match self.target {
            ClearTarget::Project(_) | ClearTarget::Session { project: Some(_), .. } => true,
            ClearTarget::All | ClearTarget::Session { project: None, .. } => false,
        };
        if one_project {
            return None;
        }
        let here = tx.rows().project_keys(project, 2);
        let next = here.into_iter().find(|key| key != project);
        if let Some(project) = next {
            self.left -= 1;
            return Some(ClearPoint {
                project,
                phase: ClearPhase::Memories(None),
            });
        }
        if *self.target == ClearTarget::All {
            let agents = tx.rows().agent_keys(PAGE);
            let more = agents.len() == PAGE;
            for agent in agents {
                tx.delete(TenantKey::Agent(agent));
                self.left -= 1;
            }
            if more {
                return Some(ClearPoint {
                    project: project.to_owned(),
                    phase: ClearPhase::Turns,
                });
            }
        }
        None
    }
}
