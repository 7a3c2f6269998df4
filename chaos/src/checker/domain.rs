//! What users would call broken, whatever the theory says: something acknowledged is gone, something is there that nobody
//! said, something happened twice, something deleted answers.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Verdict;
use crate::history::{Action, Answer, Operation, Outcome};

/// A memory as the last look at the whole graph showed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    pub key: String,
    pub id: String,
    pub version: u32,
    pub value: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    pub id: String,
    pub source: String,
    pub target: String,
}

/// Everything that is there at the end, of all tenants of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Graph {
    pub memories: Vec<Memory>,
    pub links: Vec<Link>,
}

/// The state of a shard on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    pub node: u64,
    pub shard: String,
    pub applied_index: u64,
    pub digest: String,
}

/// All checks of histories, with the graph as it was after the last operation.
pub fn check(history: &[Operation], graph: &Graph) -> Vec<(&'static str, Verdict)> {
    let keys = Keys::of(history);
    vec![
        ("no acknowledged memory lost", nothing_lost(&keys, graph)),
        ("no phantom", no_phantom(&keys, graph)),
        ("one effect per request id", one_effect(history, &keys)),
        ("links have both ends", links(history, &keys, graph)),
        ("deleted memories never answer again", deleted(history, &keys, graph)),
        ("found exactly once", found_once(history, &keys)),
    ]
}

/// What the history says of one memory.
#[derive(Default)]
struct Key {
    /// The id that an answer gave, and when.
    acknowledged: Option<(String, u64)>,
    /// Somebody asked for it, and was not certainly refused.
    create_possible: bool,
    /// The start of the first deletion that may have happened.
    delete_possible: Option<u64>,
    /// The end of the first deletion that was acknowledged.
    deleted: Option<u64>,
    /// Values that may have been written.
    values: BTreeSet<u64>,
    /// The highest version that was acknowledged.
    version: u32,
}

struct Keys<'a>(BTreeMap<&'a str, Key>);

impl<'a> Keys<'a> {
    fn of(history: &'a [Operation]) -> Self {
        let mut keys: BTreeMap<&str, Key> = BTreeMap::new();
        for operation in history {
            let key = keys.entry(&operation.key).or_default();
            let refused = match &operation.outcome {
                Outcome::Fail { .. } => true,
                Outcome::Ok { answer } => matches!(answer, Answer::Conflict { .. } | Answer::Absent),
                Outcome::Unknown { .. } => false,
            };
            if !refused {
                match operation.action {
                    Action::Create { value } => {
                        key.create_possible = true;
                        key.values.insert(value);
                    }
                    Action::Write { value } | Action::Cas { value, .. } => {
                        key.values.insert(value);
                    }
                    Action::Delete => {
                        let first = key.delete_possible.get_or_insert(operation.start);
                        *first = operation.start.min(*first);
                    }
                    Action::Read | Action::Query | Action::Link { .. } => {}
                }
            }
            let (Some(answer), Some(end)) = (operation.answer(), operation.end) else {
                continue;
            };
            match answer {
                Answer::Created { id, version, .. } => {
                    if key.acknowledged.as_ref().is_none_or(|(_, known)| end < *known) {
                        key.acknowledged = Some((id.clone(), end));
                    }
                    key.version = key.version.max(*version);
                }
                Answer::Updated { version } => key.version = key.version.max(*version),
                Answer::Deleted { .. } => {
                    let first = key.deleted.get_or_insert(end);
                    *first = end.min(*first);
                }
                _ => {}
            }
        }
        Self(keys)
    }
}

fn nothing_lost(keys: &Keys<'_>, graph: &Graph) -> Verdict {
    let there: BTreeMap<&str, &Memory> = graph
        .memories
        .iter()
        .map(|memory| (memory.id.as_str(), memory))
        .collect();
    let mut violations = Vec::new();
    for (name, key) in &keys.0 {
        let Some((id, at)) = &key.acknowledged else { continue };
        if key.delete_possible.is_some() {
            continue;
        }
        match there.get(id.as_str()) {
            None => violations.push(format!("LOST: {name} ({id}) was acknowledged at {at} and is gone")),
            Some(memory) if memory.version < key.version => violations.push(format!(
                "LOST: version {} of {name} ({id}) was acknowledged, and it has version {}",
                key.version, memory.version
            )),
            Some(_) => {}
        }
    }
    Verdict::of(violations)
}

fn no_phantom(keys: &Keys<'_>, graph: &Graph) -> Verdict {
    let mut violations = Vec::new();
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for memory in &graph.memories {
        let Memory {
            key: name, id, value, ..
        } = memory;
        if let Some(other) = seen.insert(name, id) {
            violations.push(format!("TWICE: {name} is {other} and {id}"));
        }
        let Some(key) = keys.0.get(name.as_str()).filter(|key| key.create_possible) else {
            violations.push(format!("PHANTOM: nobody stored {name} ({id})"));
            continue;
        };
        if key.acknowledged.as_ref().is_some_and(|(known, _)| known != id) {
            violations.push(format!("PHANTOM: {name} was acknowledged under another id than {id}"));
        }
        if !key.values.contains(value) {
            violations.push(format!("PHANTOM: nobody wrote {value} to {name} ({id})"));
        }
    }
    Verdict::of(violations)
}

/// Whoever sends a request again gets its first outcome (I-10); only of what was erased meanwhile nothing is told.
fn one_effect(history: &[Operation], keys: &Keys<'_>) -> Verdict {
    let erased = |operation: &Operation| {
        let mut names = vec![operation.key.as_str()];
        if let Action::Link { to } = &operation.action {
            names.push(to);
        }
        let deleted = names
            .into_iter()
            .filter_map(|name| keys.0.get(name)?.delete_possible)
            .min();
        deleted.is_some_and(|at| operation.end.is_none_or(|end| at < end))
    };
    let mut first: BTreeMap<&str, (&Operation, &Answer)> = BTreeMap::new();
    let mut violations = Vec::new();
    for operation in history.iter().filter(|operation| operation.action.writes()) {
        let Some(answer) = operation.answer() else { continue };
        match first.get(operation.request_id.as_str()) {
            None => {
                first.insert(&operation.request_id, (operation, answer));
            }
            Some((_, known)) if *known == answer => {}
            Some(_) if *answer == Answer::Absent && erased(operation) => {}
            Some((earlier, known)) => violations.push(format!(
                "TWICE: request {} ({} of {}) was answered {known:?} at {:?} and {answer:?} at {:?}",
                operation.request_id,
                operation.action.word(),
                operation.key,
                earlier.end,
                operation.end
            )),
        }
    }
    Verdict::of(violations)
}

fn links(history: &[Operation], keys: &Keys<'_>, graph: &Graph) -> Verdict {
    let memories: BTreeSet<&str> = graph.memories.iter().map(|memory| memory.id.as_str()).collect();
    let mut violations = Vec::new();
    let mut there: BTreeMap<&str, u32> = BTreeMap::new();
    for link in &graph.links {
        *there.entry(&link.id).or_default() += 1;
        for end in [&link.source, &link.target] {
            if !memories.contains(end.as_str()) {
                violations.push(format!("link {} ends at {end}, which is not there", link.id));
            }
        }
    }
    let may_be_gone = |name: &str| keys.0.get(name).is_none_or(|key| key.delete_possible.is_some());
    for operation in history {
        let (Action::Link { to }, Some(Answer::Linked { id, .. })) = (&operation.action, operation.answer()) else {
            continue;
        };
        if may_be_gone(&operation.key) || may_be_gone(to) {
            continue;
        }
        match there.get(id.as_str()) {
            Some(1) => {}
            count => violations.push(format!(
                "link {id} from {} to {to} was acknowledged and is there {} times",
                operation.key,
                count.copied().unwrap_or(0)
            )),
        }
    }
    Verdict::of(violations)
}

fn deleted(history: &[Operation], keys: &Keys<'_>, graph: &Graph) -> Verdict {
    let mut violations = Vec::new();
    for operation in history.iter().filter(|operation| !operation.repeat) {
        let gone = keys.0.get(operation.key.as_str()).and_then(|key| key.deleted);
        if gone.is_none_or(|gone| operation.start <= gone) {
            continue;
        }
        let answers = match operation.answer() {
            Some(Answer::Value { .. } | Answer::Updated { .. } | Answer::Conflict { .. } | Answer::Linked { .. }) => {
                true
            }
            Some(Answer::Found { ids }) => !ids.is_empty(),
            _ => false,
        };
        if answers {
            violations.push(format!(
                "{} answers a {} at {}, and was deleted before {}",
                operation.key,
                operation.action.word(),
                operation.start,
                gone.unwrap_or_default()
            ));
        }
    }
    for memory in &graph.memories {
        if keys.0.get(memory.key.as_str()).is_some_and(|key| key.deleted.is_some()) {
            violations.push(format!("{} ({}) was deleted and is there", memory.key, memory.id));
        }
    }
    Verdict::of(violations)
}

/// A question that names a memory finds it once it was acknowledged, and finds it once.
fn found_once(history: &[Operation], keys: &Keys<'_>) -> Verdict {
    let mut violations = Vec::new();
    for operation in history {
        let (Some(Answer::Found { ids }), Some(end)) = (operation.answer(), operation.end) else {
            continue;
        };
        let Some(key) = keys.0.get(operation.key.as_str()) else {
            continue;
        };
        let name = &operation.key;
        if ids.len() > 1 {
            violations.push(format!(
                "TWICE: a question at {} finds {name} as {ids:?}",
                operation.start
            ));
        }
        if ids.is_empty()
            && key.acknowledged.as_ref().is_some_and(|(_, at)| *at < operation.start)
            && key.delete_possible.is_none_or(|at| at > end)
        {
            violations.push(format!(
                "a question at {} does not find {name}, which was acknowledged",
                operation.start
            ));
        }
        if let (Some((known, _)), Some(id)) = (&key.acknowledged, ids.first())
            && known != id
        {
            violations.push(format!(
                "PHANTOM: a question finds {name} as {id}; it was acknowledged as {known}"
            ));
        }
    }
    Verdict::of(violations)
}

/// At one applied index all replicas of a shard have the same state (I-02). Replicas that are not equally far say nothing.
pub fn digests(seen: &[Digest], replicas: usize) -> Verdict {
    let mut shards: BTreeMap<&str, Vec<&Digest>> = BTreeMap::new();
    for digest in seen {
        shards.entry(&digest.shard).or_default().push(digest);
    }
    if shards.is_empty() {
        return Verdict::unknown("no node told a digest");
    }
    let (mut violations, mut unknown) = (Vec::new(), Vec::new());
    for (shard, digests) in shards {
        let mut at: BTreeMap<u64, Vec<&Digest>> = BTreeMap::new();
        for digest in &digests {
            at.entry(digest.applied_index).or_default().push(digest);
        }
        for (index, same) in &at {
            let different: BTreeSet<&str> = same.iter().map(|digest| digest.digest.as_str()).collect();
            if different.len() > 1 {
                violations.push(format!("{shard} at index {index}: {same:?}"));
            }
        }
        let most = at.values().map(Vec::len).max().unwrap_or(0);
        if most < replicas {
            unknown.push(format!("{shard}: {most} of {replicas} replicas at one index"));
        }
    }
    if violations.is_empty() && !unknown.is_empty() {
        return Verdict::unknown(unknown.join("; "));
    }
    Verdict::of(violations)
}

#[cfg(test)]
mod tests;
