//! What the calls about the past share: which scopes are asked for, texts cut to what lists show, tombstones.

use waggle_memory::id::MemoryId;
use waggle_memory::memory::{Memory, Tombstone};
use waggle_memory::scope::Scope;
use waggle_memory::tables::typed::TenantRows;
use waggle_memory::time::Millis;
use waggle_proto::wire;

use super::views;

/// Evidence of one memory that is looked through for its agents and sessions.
const EVIDENCE_READ_MAX: usize = 100;
/// Content of a memory in a list: gateways show less.
const CONTENT_BYTES_MAX: usize = 1_024;

/// A scope of which every given field filters.
pub(super) struct Wanted {
    project_key: String,
    agent_key: String,
    session: String,
}

impl Wanted {
    pub(super) fn new(scope: &Scope) -> Self {
        Self {
            project_key: scope.project_key(),
            agent_key: scope.agent_key(),
            session: scope.session_id.clone(),
        }
    }

    /// Whether one scope is the wanted one.
    pub(super) fn has(&self, scope: &Scope) -> bool {
        (self.project_key.is_empty() || scope.project_key() == self.project_key) && self.has_voice(scope)
    }

    /// Whether agent and session are the wanted ones.
    fn has_voice(&self, scope: &Scope) -> bool {
        (self.agent_key.is_empty() || scope.agent_key() == self.agent_key)
            && (self.session.is_empty() || scope.session_id == self.session)
    }

    /// Whether a memory belongs to the wanted scope: it belongs to every agent and session of its evidence.
    pub(super) fn has_memory(&self, rows: TenantRows<'_>, memory: &Memory) -> bool {
        if !self.project_key.is_empty() && memory.scope.project_key() != self.project_key {
            return false;
        }
        self.has_voice(&memory.scope)
            || rows
                .evidence(memory.id, EVIDENCE_READ_MAX)
                .iter()
                .any(|(_, evidence)| self.has_voice(&evidence.scope))
    }
}

/// A memory in a list about the past.
pub(super) fn listed(rows: TenantRows<'_>, memory: &Memory, at: Millis) -> wire::Memory {
    let mut view = views::brief(rows, memory, at).0;
    view.content = cut(&view.content, CONTENT_BYTES_MAX).to_owned();
    view.aliases.clear();
    view
}

pub(super) fn tombstone(id: MemoryId, tombstone: &Tombstone) -> wire::Tombstone {
    let of = tombstone.of.as_ref();
    wire::Tombstone {
        id: id.bytes().to_vec(),
        deleted_at: tombstone.deleted_at.0,
        author: tombstone.author.0.clone(),
        receipt: tombstone.receipt.clone(),
        deleted_links: tombstone.deleted_links,
        scope: of.map(|of| wire::scope(&of.scope)),
        kind: of.map_or(0, |of| u32::from(of.kind.number())),
        content_hash: of.map(|of| of.content_hash.to_vec()).unwrap_or_default(),
    }
}

/// The front of a text, on a character boundary.
pub(super) fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_given_field_filters_and_names_compare_without_case() {
        let scope = |project: &str, agent: &str, session: &str| Scope {
            project: project.to_owned(),
            agent_id: agent.to_owned(),
            session_id: session.to_owned(),
        };
        let stored = scope("Shop", "Coder", "s1");
        for (wanted, has) in [
            (scope("", "", ""), true),
            (scope(" shop", "", ""), true),
            (scope("shop", "CODER", "s1"), true),
            (scope("shop", "", "S1"), false),
            (scope("shop", "other", ""), false),
            (scope("bank", "", ""), false),
        ] {
            assert_eq!(Wanted::new(&wanted).has(&stored), has, "{wanted:?}");
        }
        assert!(
            !Wanted::new(&scope("shop", "", "")).has(&scope("", "", "")),
            "tenant-wide is another scope"
        );
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
    }
}
