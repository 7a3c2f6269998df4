//! query_graph: recall.

use std::collections::BTreeSet;
use std::sync::Arc;

use waggle_memory::kind::Kind;
use waggle_memory::memory::{State, Vector};
use waggle_memory::meta::ShardId;
use waggle_memory::scope::{Scope, name_key};
use waggle_memory::tables::Item;
use waggle_memory::tables::typed::TenantRows;
use waggle_memory::time::Millis;
use waggle_memory::time_words::{TimeIntent, TimeOrder, interpret};
use waggle_memory::transcript::Counters;
use waggle_proto::wire::{
    self, AnswerExplain, Interpretation, QueryReply, QueryRequest, ReadPoint, query_request::Mode,
};
use waggle_recall::index::{Filter, IndexAnswer, IndexQuery, Items, Preferences, QueryVector, StateFilter};

use super::hits::{Assembly, Shown, order_by_time, words_of};
use super::views;
use crate::call::Call;
use crate::engine::Engine;
use crate::error::CallError;

/// Longest query in bytes.
const QUERY_BYTES_MAX: usize = 8_192;
/// Most memories and most turns of one answer.
const NODES_MAX: u32 = 200;
/// Deepest walks.
const DEPTH_MAX: u32 = 5;
/// Hits that are looked at for one answer: memories and turns share one ranking, so a good deal more than is shown.
const HITS_MAX: usize = 800;

pub(super) async fn handle(engine: &Arc<Engine>, request: QueryRequest) -> Result<QueryReply, CallError> {
    let call = Call::new(engine, request.context.clone())?;
    let asked = Asked::read(request, engine.clock.wall())?;
    let applied_index = if asked.bounded {
        call.at_least(asked.read_after).await?
    } else {
        call.linearize().await?
    };
    let vector = match asked.query.trim() {
        "" => None,
        query => engine.embedder.for_query(query.to_owned()).await,
    };
    let (shard, lexical_only) = (call.shard, !engine.embedder.is_available());
    let mut reply = call
        .read(move |engine, rows| answer(engine, shard, rows, &asked, vector.as_ref()))
        .await?;
    if lexical_only {
        reply
            .warnings
            .push("lexical_only: no embedding model is loaded, words alone decide".to_owned());
    }
    if let Some(read_at) = &mut reply.read_at {
        read_at.applied_index = applied_index;
    }
    Ok(reply)
}

/// A checked question. Also what prime_context asks.
pub(super) struct Asked {
    pub(super) scope: Scope,
    pub(super) query: String,
    pub(super) nodes_max: usize,
    pub(super) depth: u32,
    pub(super) expand_depth: u32,
    pub(super) mode: Mode,
    pub(super) include_invalidated: bool,
    pub(super) as_of: Option<Millis>,
    pub(super) known_at: Option<Millis>,
    pub(super) kinds: Vec<Kind>,
    pub(super) tags: Vec<String>,
    pub(super) strict_scope: bool,
    pub(super) explain: bool,
    pub(super) bounded: bool,
    pub(super) read_after: u64,
    pub(super) recorded_until: Option<Millis>,
    pub(super) shown: BTreeSet<u32>,
    pub(super) now: Millis,
    pub(super) intent: TimeIntent,
}

impl Asked {
    fn read(request: QueryRequest, now: Millis) -> Result<Self, CallError> {
        let scope = wire::scope_of(request.scope.clone())?;
        if request.query.len() > QUERY_BYTES_MAX {
            return Err(CallError::invalid(
                "query",
                format!("{} bytes; at most {QUERY_BYTES_MAX}", request.query.len()),
            ));
        }
        if request.query.trim().is_empty() && request.kinds.is_empty() && request.tags.is_empty() {
            return Err(CallError::invalid("query", "may be blank only with node_types or tags"));
        }
        if !(1..=NODES_MAX).contains(&request.max_nodes) {
            return Err(CallError::invalid(
                "max_nodes",
                format!("{}; 1 to {NODES_MAX}", request.max_nodes),
            ));
        }
        let kinds = request
            .kinds
            .iter()
            .map(|kind| super::store_memory::kind_of(*kind))
            .collect::<Result<_, _>>()?;
        let intent = interpret(&request.query, now);
        Ok(Self {
            mode: request.mode(),
            scope,
            nodes_max: usize::try_from(request.max_nodes).unwrap_or(usize::MAX),
            depth: request.max_depth.min(DEPTH_MAX),
            expand_depth: request.expand_depth.min(2),
            include_invalidated: request.include_invalidated,
            as_of: request.as_of.map(Millis).or(intent.as_of),
            known_at: request.known_at.map(Millis),
            kinds,
            tags: request.tags,
            strict_scope: request.strict_scope,
            explain: request.explain,
            bounded: request.bounded,
            read_after: request.read_after_index,
            recorded_until: request.recorded_until.map(Millis),
            shown: request.shown.into_iter().collect(),
            query: request.query,
            now,
            intent,
        })
    }

    fn filter(&self, projects: Option<Vec<String>>) -> Filter {
        let state = match self.as_of {
            Some(at) => StateFilter::AsOf(at),
            None => StateFilter::At {
                at: self.now,
                closed: self.include_invalidated || self.intent.include_closed,
                scheduled: self.include_invalidated || self.intent.include_scheduled,
            },
        };
        let strict = |value: &str| (self.strict_scope && !value.is_empty()).then(|| value.to_owned());
        Filter {
            items: match self.mode {
                Mode::Fusion => Items::Both,
                Mode::Graph => Items::Memories,
                Mode::Replay => Items::Turns,
            },
            namespaces: None,
            tenant_wide: !self.strict_scope,
            projects,
            session: strict(&self.scope.session_id),
            agent_key: strict(&self.scope.agent_key()),
            kinds: self.kinds.clone(),
            tags: self.tags.clone(),
            state,
            known_at: [self.known_at, self.recorded_until].into_iter().flatten().min(),
            period: self.intent.period,
        }
    }

    /// Keys of the projects in scope: the one given, or those that a session touched; None for the whole tenant.
    pub(super) fn projects(&self, rows: TenantRows<'_>) -> Option<Vec<String>> {
        let given = self.scope.project_key();
        if !given.is_empty() {
            return Some(vec![given]);
        }
        if self.scope.session_id.is_empty() {
            return None;
        }
        let sessions = rows.sessions(None, 10_000);
        let touched: Vec<String> = sessions
            .into_iter()
            .filter(|session| session.session_id == self.scope.session_id)
            .map(|session| name_key(&session.project))
            .collect();
        // A session that nobody knows touched nothing: tenant-wide memory only, never everything.
        Some(touched)
    }
}

/// Searches, assembles, and says why when nothing was found.
pub(super) fn answer(
    engine: &Engine,
    shard: ShardId,
    rows: TenantRows<'_>,
    asked: &Asked,
    vector: Option<&Vector>,
) -> Result<QueryReply, CallError> {
    let projects = asked.projects(rows);
    let mut filter = asked.filter(projects.clone());
    let mut found = search(engine, shard, rows, asked, &filter, vector)?;
    let mut period_empty = false;
    if found.hits.is_empty() && filter.period.is_some() {
        // Nothing lies in the period: the best outside, marked.
        filter.period = None;
        found = search(engine, shard, rows, asked, &filter, vector)?;
        period_empty = !found.hits.is_empty();
    }
    order_by_time(&mut found.hits, &asked.intent, |item| start_of(rows, item, asked.now));
    let assembly = Assembly {
        nodes_max: if asked.mode == Mode::Replay { 0 } else { asked.nodes_max },
        turns_max: if asked.mode == Mode::Graph { 0 } else { asked.nodes_max },
        depth: asked.depth,
        expand_depth: asked.expand_depth,
        explain: asked.explain,
        at: asked.as_of.unwrap_or(asked.now),
        recorded_by: [asked.as_of, asked.known_at].into_iter().flatten().min(),
        closed_too: asked.include_invalidated || asked.intent.include_closed,
        scheduled_too: asked.as_of.is_none() && (asked.include_invalidated || asked.intent.include_scheduled),
        words: words_of(&asked.query),
        project: projects.as_ref().and_then(|projects| projects.first().cloned()),
    };
    let hits = std::mem::take(&mut found.hits);
    let mut shown = assembly.assemble(rows, hits, &asked.shown);
    if period_empty {
        shown.nodes.iter_mut().for_each(|node| node.outside_period = true);
        shown.turns.iter_mut().for_each(|turn| turn.outside_period = true);
    }
    Ok(reply(engine, shard, rows, asked, &found, shown, period_empty))
}

fn search(
    engine: &Engine,
    shard: ShardId,
    rows: TenantRows<'_>,
    asked: &Asked,
    filter: &Filter,
    vector: Option<&Vector>,
) -> Result<IndexAnswer, CallError> {
    let index = engine.index(shard, rows.tenant())?;
    let agent_key = asked.scope.agent_key();
    let query = IndexQuery {
        text: &asked.query,
        vector: vector.map(|v| QueryVector {
            components: &v.components,
            scale: f32::from_bits(v.scale_bits),
        }),
        filter,
        prefer: Preferences {
            session: &asked.scope.session_id,
            agent_key: &agent_key,
        },
        now: asked.now,
        limit: HITS_MAX,
        explain: asked.explain,
        tuning: &engine.tuning,
    };
    let found = index.read().search(&query);
    Ok(found)
}

/// When an item begins, and whether it is closed.
fn start_of(rows: TenantRows<'_>, item: Item, now: Millis) -> Option<(Millis, bool)> {
    match item {
        Item::Memory(id) => rows
            .memory(id)
            .map(|memory| (memory.valid_from, memory.state_at(now) == State::Closed)),
        Item::Turn(id) => rows.turn(id).map(|turn| (turn.observed_at, false)),
    }
}

fn reply(
    engine: &Engine,
    shard: ShardId,
    rows: TenantRows<'_>,
    asked: &Asked,
    found: &IndexAnswer,
    shown: Shown,
    period_empty: bool,
) -> QueryReply {
    let empty = shown.nodes.is_empty() && shown.turns.is_empty() && asked.shown.is_empty();
    let (empty_reason, hint) = if empty {
        why_empty(rows, asked, found)
    } else {
        Default::default()
    };
    let mut warnings = Vec::new();
    if asked.as_of.is_some() && asked.include_invalidated {
        warnings.push("as_of_overrides_include_invalidated".to_owned());
    }
    if found.awaiting_vectors > 0 {
        warnings.push(format!(
            "embedding_behind: {} items in scope are found by words only so far",
            found.awaiting_vectors
        ));
    }
    let status = engine.index_status(rows.tenant());
    QueryReply {
        links: views::links_among(rows, &shown.memories),
        nodes: shown.nodes,
        turns: shown.turns,
        ranking: shown.ranking,
        conflicts: shown.conflicts.iter().map(wire::link).collect(),
        total_in_scope: total_in_scope(rows, asked),
        empty_reason,
        hint,
        warnings,
        interpreted: Some(interpretation(asked, period_empty)),
        explain: asked.explain.then(|| AnswerExplain {
            candidates: wide(found.candidates),
            removed_by_scope: wide(found.counts.removed_by_scope),
            removed_by_state: wide(found.counts.removed_closed + found.counts.removed_scheduled),
            removed_by_type_or_tag: wide(found.counts.removed_by_type_or_tag),
            index_documents: wide(status.documents),
            best_cosine: found.best_cosine.unwrap_or(0.0),
            model: engine.embedder.model().to_owned(),
        }),
        read_at: Some(ReadPoint {
            shard: shard.0,
            applied_index: 0,
            stamp: asked.recorded_until.unwrap_or(asked.now).0,
        }),
        more: shown.more,
        awaiting_vectors: wide(found.awaiting_vectors),
    }
}

fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn interpretation(asked: &Asked, period_empty: bool) -> Interpretation {
    let intent = &asked.intent;
    Interpretation {
        words: intent.words.clone(),
        period_from: intent.period.map(|(from, _)| from.0),
        period_to: intent.period.map(|(_, to)| to.0),
        as_of: asked.as_of.map(|at| at.0),
        period_empty,
        order: match intent.order {
            TimeOrder::None if intent.prefer_recent => "recent",
            TimeOrder::None => "",
            TimeOrder::Latest => "latest",
            TimeOrder::Oldest => "oldest",
            TimeOrder::Former => "former",
        }
        .to_owned(),
    }
}

/// Memories in scope that were not ended, from counters.
pub(super) fn total_in_scope(rows: TenantRows<'_>, asked: &Asked) -> u64 {
    let open = |counters: &Counters| counters.memories().saturating_sub(counters.memories_closed);
    let of = |project: &str| rows.project(project).map_or(0, |project| open(&project.counters));
    let Some(projects) = asked.projects(rows) else {
        return open(&rows.state().counters);
    };
    let own: u64 = projects.iter().filter(|key| !key.is_empty()).map(|key| of(key)).sum();
    if asked.strict_scope { own } else { own + of("") }
}

/// The machine-readable reason of an empty answer, and what to do about it.
pub(super) fn why_empty(rows: TenantRows<'_>, asked: &Asked, found: &IndexAnswer) -> (String, String) {
    let said = |reason: &str, hint: String| (reason.to_owned(), hint);
    let scope = &asked.scope;
    if let Some(hint) = unknown_scope(rows, scope) {
        return said("scope_unknown", hint);
    }
    let counts = &found.counts;
    if counts.in_scope == 0 && counts.removed_by_record == 0 {
        return said(
            "no_memories_in_scope",
            "the scope exists and holds nothing; store something or widen the scope".to_owned(),
        );
    }
    if !asked.query.trim().is_empty() && found.query_terms == 0 && found.no_match {
        return said(
            "query_has_no_words",
            "the query holds only punctuation or stop words; say what it is about".to_owned(),
        );
    }
    let widen = "repeat with include_invalidated or as_of".to_owned();
    if counts.removed_by_record > 0 && counts.passed == 0 {
        return said(
            "before_first_record",
            "as_of or known_at is earlier than anything in scope".to_owned(),
        );
    }
    let filtered = !asked.kinds.is_empty() || !asked.tags.is_empty();
    if filtered && (counts.removed_by_type_or_tag > 0 || asked.query.trim().is_empty()) {
        return said(
            "filtered_by_type_or_tag",
            "matches exist, the node_types or tags remove them".to_owned(),
        );
    }
    if asked.as_of.is_some() && counts.removed_scheduled > 0 && counts.removed_closed == 0 {
        return said(
            "before_first_record",
            "as_of is earlier than the beginning of anything that matches".to_owned(),
        );
    }
    if counts.removed_closed > 0 {
        return said("all_closed", widen);
    }
    if counts.removed_scheduled > 0 {
        return said("all_scheduled", widen);
    }
    said(
        "no_match",
        "nothing in scope matches by word or meaning; try other words or a wider scope".to_owned(),
    )
}

/// Whether a given project, agent or session was never used; the hint names similar ones.
fn unknown_scope(rows: TenantRows<'_>, scope: &Scope) -> Option<String> {
    let hint = |what: &str, given: &str, similar: Vec<String>| {
        if similar.is_empty() {
            format!("no {what} '{given}' is known")
        } else {
            format!("no {what} '{given}' is known; similar: {}", similar.join(", "))
        }
    };
    if !scope.project.trim().is_empty() && rows.project(&scope.project).is_none() {
        let known = rows.projects(1_000).into_iter().map(|project| project.name);
        return Some(hint(
            "project",
            &scope.project,
            views::similar_names(&scope.project, known),
        ));
    }
    if !scope.agent_id.trim().is_empty() && rows.agent(&scope.agent_id).is_none() {
        let known = rows.agents(1_000).into_iter().map(|agent| agent.name);
        return Some(hint(
            "agent",
            &scope.agent_id,
            views::similar_names(&scope.agent_id, known),
        ));
    }
    if !scope.session_id.is_empty() {
        let project_key = scope.project_key();
        let sessions = rows.sessions((!project_key.is_empty()).then_some(project_key.as_str()), 10_000);
        // Without a project any project's session counts; a new session of a known project is not a mistake.
        if project_key.is_empty() && !sessions.iter().any(|session| session.session_id == scope.session_id) {
            let known = sessions.into_iter().map(|session| session.session_id);
            return Some(hint(
                "session",
                &scope.session_id,
                views::similar_names(&scope.session_id, known),
            ));
        }
    }
    None
}
