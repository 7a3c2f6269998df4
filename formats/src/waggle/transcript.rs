//! Turns as transcript lines and sessions as context windows of Waggle.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use waggle_memory::handoff::Message;
use waggle_memory::id::{PairId, TurnId};
use waggle_memory::kind::Role;
use waggle_memory::scope::Scope;
use waggle_memory::transcript::{Session, Turn};

use super::fields::{self, Object, count, cut, derived, needed, text, time, uuid};
use super::{Changes, Importer, OURS};
use crate::json::{hex, why};
use crate::limits::TURN_BYTES_MAX;
use crate::shape::transcript::{SessionShape, TurnShape};

/// The line of a turn.
pub(crate) fn to_line(turn: &Turn, message: Option<Message>, tenant: &str) -> Result<Value, String> {
    let digest: [u8; 32] = Sha256::digest(turn.text.as_bytes()).into();
    let shape = serde_json::to_value(TurnShape::new(turn, message)).map_err(|error| why(&error))?;
    let mut rest = fields::object(shape)?;
    for shared in [
        "agent_id",
        "observed_at",
        "project",
        "role",
        "session_id",
        "text",
        "turn_index",
    ] {
        rest.shift_remove(shared);
    }
    Ok(json!({
        "agent_id": turn.scope.agent_id,
        "content_hash": hex(&digest),
        "embedding_b64": "",
        "embedding_dim": 0,
        "embedding_model_id": "",
        "id": turn.id.to_string(),
        "metadata": { OURS: rest },
        "observed_at": turn.observed_at.to_string(),
        "project": turn.scope.project,
        "role": turn.role.word(),
        "session_id": turn.scope.session_id,
        "tags": [],
        "tenant_id": tenant,
        "transcript_text": turn.text,
        "turn_index": turn.turn_index,
        "turn_pair_id": turn.pair.to_string(),
    }))
}

/// The turn of a line, and which message it is.
pub(crate) fn from_line(
    line: Value,
    importer: &Importer,
    changes: &mut Changes,
) -> Result<(Turn, Option<Message>), String> {
    let line = fields::object(line)?;
    let mut metadata = fields::metadata(&line);
    if let Some(Value::Object(mut shape)) = metadata.shift_remove(OURS) {
        for shared in ["agent_id", "observed_at", "project", "role", "session_id", "turn_index"] {
            shape.insert(shared.to_owned(), line.get(shared).cloned().unwrap_or(Value::Null));
        }
        shape.insert(
            "text".to_owned(),
            line.get("transcript_text").cloned().unwrap_or(Value::Null),
        );
        let shape: TurnShape = serde_json::from_value(Value::Object(shape))
            .map_err(|error| format!("metadata.{OURS}: {}", why(&error)))?;
        return Ok(shape.read());
    }
    let id = TurnId::from_uuid(uuid(&needed(&line, "id")?, changes));
    let pair = text(&line, "turn_pair_id")?;
    let pair = if pair.trim().is_empty() {
        derived(&format!("{id}/pair"))
    } else {
        uuid(&pair, &mut Changes::default())
    };
    let observed_at = time(&line, "observed_at")?.unwrap_or(importer.at);
    let role = text(&line, "role")?.trim().to_lowercase();
    let words = text(&line, "transcript_text")?;
    let words = if words.is_empty() {
        text(&line, "content")?
    } else {
        words
    };
    let turn = Turn {
        id,
        pair: PairId::from_uuid(pair),
        scope: Scope {
            project: cut(text(&line, "project")?, Scope::FIELD_BYTES_MAX, changes),
            agent_id: cut(text(&line, "agent_id")?, Scope::FIELD_BYTES_MAX, changes),
            session_id: cut(text(&line, "session_id")?, Scope::FIELD_BYTES_MAX, changes),
        },
        // Whatever is neither the person nor the agent stands around the conversation.
        role: Role::from_str(&role).unwrap_or(Role::System),
        turn_index: count(&line, "turn_index")?,
        text: cut(words, TURN_BYTES_MAX, changes),
        observed_at,
        recorded_at: observed_at,
        author: importer.author.clone(),
        memories: Vec::new(),
    };
    Ok((turn, None))
}

/// The context window of a session.
pub(crate) fn to_window(session: &Session, tenant: &str) -> Result<Value, String> {
    let shape = serde_json::to_value(SessionShape::from(session)).map_err(|error| why(&error))?;
    Ok(json!({
        "closed_at": null,
        "created_at": session.first_used_at.to_string(),
        "embedding_stale": false,
        "id": derived(&format!("window/{}/{}", session.project, session.session_id)).to_string(),
        "metadata": { OURS: shape },
        "node_count": session.memory_count,
        "repo_id": session.project,
        "session_id": session.session_id,
        "status": "active",
        "tenant_id": tenant,
        "title": session.title,
        "updated_at": session.last_used_at.to_string(),
    }))
}

/// The session of a context window; none where the window says nothing that the turns do not say. `repos` gives the
/// project of a window's repository.
pub(crate) fn from_window(
    line: Value,
    repos: &BTreeMap<String, String>,
    importer: &Importer,
    changes: &mut Changes,
) -> Result<Option<Session>, String> {
    let line = fields::object(line)?;
    let mut metadata = fields::metadata(&line);
    if let Some(shape) = metadata.shift_remove(OURS) {
        let shape: SessionShape =
            serde_json::from_value(shape).map_err(|error| format!("metadata.{OURS}: {}", why(&error)))?;
        return Ok(Some(shape.into()));
    }
    let session_id = cut(text(&line, "session_id")?, Scope::FIELD_BYTES_MAX, changes);
    let title = text(&line, "title")?;
    if session_id.is_empty() || title.trim().is_empty() {
        return Ok(None);
    }
    let project = repos.get(&text(&line, "repo_id")?).cloned().unwrap_or_default();
    let first = time(&line, "created_at")?.unwrap_or(importer.at);
    Ok(Some(Session {
        project: cut(project, Scope::FIELD_BYTES_MAX, changes),
        session_id,
        agents: Vec::new(),
        title: cut(title, Session::TITLE_BYTES_MAX, changes),
        first_used_at: first,
        last_used_at: time(&line, "updated_at")?.unwrap_or(first).max(first),
        turn_count: 0,
        memory_count: 0,
    }))
}

/// Names of repositories by id.
pub(crate) fn repos(list: &Value) -> BTreeMap<String, String> {
    let Value::Array(list) = list else {
        return BTreeMap::new();
    };
    let name = |repo: &Value| -> Option<(String, String)> {
        let repo: &Object = repo.as_object()?;
        Some((
            repo.get("id")?.as_str()?.to_owned(),
            repo.get("name")?.as_str()?.to_owned(),
        ))
    };
    list.iter().filter_map(name).collect()
}
