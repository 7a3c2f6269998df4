//! Changing a memory: the old version and wording stay, id, links and evidence stay, nothing is merged.

use super::conflicts;
use super::transaction::Transaction;
use crate::command::UpdateMemory;
use crate::kind::Confidence;
use crate::memory::{Alias, ChangeReason, Evidence, Memory, Version};
use crate::outcome::{Outcome, Rejection};
use crate::tables::{Item, Row, TenantKey};

/// Bookkeeping tags survive a replacement of the caller's tags: they say how the memory came to be.
const BOOKKEEPING: [&str; 4] = ["observed", "decomposed", "speaker:user", "speaker:assistant"];

pub(super) fn apply_update(tx: &mut Transaction<'_>, command: &UpdateMemory) -> Result<Outcome, Rejection> {
    let Some(old) = tx.rows().resolved(command.id) else {
        return Err(Rejection::NotFound {
            what: "memory",
            id: command.id.to_string(),
        });
    };
    let stale = command.expected_version.is_some_and(|expected| expected != old.version)
        || (command.statement.is_some() && command.based_on_version != old.version);
    if stale {
        return Err(Rejection::VersionConflict { current: old.version });
    }
    let mut new = old.clone();
    change_text(tx, &mut new, &old, command);
    if let Some(tags) = &command.tags {
        let kept: Vec<String> = old
            .tags
            .iter()
            .filter(|tag| BOOKKEEPING.contains(&tag.as_str()))
            .cloned()
            .collect();
        new.tags = super::duplicates::united(&kept, tags);
    }
    if let Some(from) = command.valid_from {
        new.valid_from = from;
        new.valid_from_stated = true;
    }
    new.valid_to = command.valid_to.or(new.valid_to);
    if new.valid_to.is_some_and(|to| to <= new.valid_from) {
        let why = format!("must lie after valid_from ({})", new.valid_from);
        return Err(Rejection::Invalid { field: "valid_to", why });
    }
    new.confidence = Confidence::Explicit;
    let evidence = Evidence {
        id: tx.evidence_id(old.id, old.evidence_count.saturating_add(1)),
        turn: None,
        scope: old.scope.clone(),
        text: super::remember::prefix(&new.content, Evidence::TEXT_BYTES_MAX).to_owned(),
        observed_at: tx.now,
        author: tx.principal.clone(),
    };
    tx.add_evidence(&mut new, evidence);
    tx.change_memory(&old, new, ChangeReason::Update);
    if !command.note.is_empty() {
        let note = command.note.clone();
        let version = Version {
            note,
            ..tx.version_of(&old, ChangeReason::Update)
        };
        tx.put(TenantKey::Version(old.id, old.version), Row::Version(Box::new(version)));
    }
    if let Some(vector) = &command.vector {
        tx.set_vector(Item::Memory(old.id), vector);
    }
    let conflicts = if command.statement.is_some() {
        conflicts::refresh_reasons(tx, old.id);
        conflicts::detect(tx, old.id)
    } else {
        Vec::new()
    };
    Ok(Outcome::Updated {
        id: old.id,
        previous_version: old.version,
        conflicts,
    })
}

fn change_text(tx: &Transaction<'_>, new: &mut Memory, old: &Memory, command: &UpdateMemory) {
    if let Some(label) = &command.label {
        new.label.clone_from(label);
    }
    if let Some(content) = &command.content
        && *content != old.content
    {
        new.content.clone_from(content);
        if new.aliases.len() < Memory::ALIASES_MAX && !new.aliases.iter().any(|alias| alias.text == old.content) {
            let alias = Alias {
                text: old.content.clone(),
                author: old.author.clone(),
                added_at: tx.now,
                exact: None,
            };
            new.aliases.push(alias);
        }
        // Wordings merged in before belonged to the old text: they stay searchable, but no longer take merges.
        new.aliases.iter_mut().for_each(|alias| alias.exact = None);
    }
    if let Some(statement) = &command.statement {
        new.statement = statement.clone();
        new.rules_version = command.rules_version;
        new.text_version = old.version.saturating_add(1);
    }
}
