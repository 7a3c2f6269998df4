//! Which memories a listing is about: exactly the project, the session and the agent that were given.

use waggle_memory::id::MemoryId;
use waggle_memory::memory::{Evidence, Memory};
use waggle_memory::scope::{Scope, name_key};
use waggle_memory::tables::typed::TenantRows;

/// Rows read at once.
const PAGE: usize = 256;

/// Fields that were given, in their comparison form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Scoped {
    project: Option<String>,
    agent: Option<String>,
    session: Option<String>,
}

/// A walk over memories, newest first.
pub(super) struct Walked {
    /// Memories of the scope that were handed on.
    pub(super) taken: usize,
    /// There are older ones that nobody looked at.
    pub(super) cut: bool,
}

impl Scoped {
    pub(super) fn of(scope: &Scope) -> Self {
        let given = |key: String| (!key.is_empty()).then_some(key);
        Self {
            project: given(scope.project_key()),
            agent: given(scope.agent_key()),
            session: given(scope.session_id.clone()),
        }
    }

    /// A memory belongs to its project, and to every session and agent in its evidence.
    pub(super) fn holds(&self, rows: TenantRows<'_>, memory: &Memory) -> bool {
        if self
            .project
            .as_ref()
            .is_some_and(|project| *project != memory.scope.project_key())
        {
            return false;
        }
        if self.fits(&memory.scope) {
            return true;
        }
        if memory.evidence_count < 2 {
            return false;
        }
        let evidence: Vec<Evidence> = rows
            .evidence(
                memory.id,
                usize::try_from(Memory::EVIDENCE_KEPT_MAX).unwrap_or(usize::MAX),
            )
            .into_iter()
            .map(|(_, evidence)| evidence)
            .collect();
        let scopes = || evidence.iter().map(|evidence| &evidence.scope).chain([&memory.scope]);
        self.session
            .is_none_or_any(scopes(), |session, scope| *session == scope.session_id)
            && self
                .agent
                .is_none_or_any(scopes(), |agent, scope| *agent == name_key(&scope.agent_id))
    }

    fn fits(&self, scope: &Scope) -> bool {
        self.session.as_ref().is_none_or(|session| *session == scope.session_id)
            && self.agent.as_ref().is_none_or(|agent| *agent == scope.agent_key())
    }

    /// Hands on the newest memories of the scope, at most `take_max` of at most `look_max`, that `wanted` accepts.
    pub(super) fn newest(
        &self,
        rows: TenantRows<'_>,
        look_max: usize,
        take_max: usize,
        wanted: impl Fn(&Memory) -> bool,
        mut take: impl FnMut(Memory),
    ) -> Walked {
        let (mut looked, mut taken) = (0, 0);
        let mut before: Option<MemoryId> = None;
        loop {
            let page = rows.memories_before(before, PAGE);
            let Some(last) = page.last().map(|memory| memory.id) else {
                return Walked { taken, cut: false };
            };
            for memory in page {
                if looked == look_max || taken == take_max {
                    return Walked { taken, cut: true };
                }
                looked += 1;
                if wanted(&memory) && self.holds(rows, &memory) {
                    taken += 1;
                    take(memory);
                }
            }
            before = Some(last);
        }
    }
}

trait NoneOrAny<T> {
    fn is_none_or_any<'a>(&self, among: impl Iterator<Item = &'a Scope>, matches: impl Fn(&T, &Scope) -> bool) -> bool;
}

impl<T> NoneOrAny<T> for Option<T> {
    fn is_none_or_any<'a>(
        &self,
        mut among: impl Iterator<Item = &'a Scope>,
        matches: impl Fn(&T, &Scope) -> bool,
    ) -> bool {
        self.as_ref()
            .is_none_or(|given| among.any(|scope| matches(given, scope)))
    }
}
