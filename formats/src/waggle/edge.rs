//! Links as lines of Waggle.

use std::str::FromStr;

use serde_json::{Number, Value, json};
use waggle_memory::id::{LinkId, MemoryId};
use waggle_memory::kind::{Confidence, Origin, Relationship};
use waggle_memory::link::{Link, Resolution};

use super::fields::{self, Object, cut, needed, take, text, texts, time, uuid};
use super::{Changes, Importer, OURS};
use crate::json::why;
use crate::shape::link::LinkShape;

/// Fields that both have.
const SHARED: [&str; 4] = ["id", "relationship", "source_id", "target_id"];
const NOTE_BYTES_MAX: usize = 4_096;
const TERMS_MAX: usize = 8;
const TERM_BYTES_MAX: usize = 256;

/// The line of a link.
pub(crate) fn to_line(link: &Link, tenant: &str) -> Result<Value, String> {
    let shape = serde_json::to_value(LinkShape::from(link)).map_err(|error| why(&error))?;
    let mut rest = fields::object(shape)?;
    let mut line = Object::new();
    take(&mut rest, &SHARED, &mut line);
    let confidence = match link.confidence {
        Confidence::Explicit => 1.0,
        Confidence::Inferred => 0.9,
        Confidence::Weak => 0.5,
    };
    let more = json!({
        "created_at": link.created_at.to_string(),
        "metadata": { "edge_confidence": confidence, OURS: rest },
        "shared_entities": link.shared_terms,
        "tenant_id": tenant,
        "weight": Number::from_f64(f64::from(link.weight_thousandths) / 1000.0),
    });
    line.extend(fields::object(more)?);
    Ok(Value::Object(line))
}

/// The link of a line; none if it leads to itself.
pub(crate) fn from_line(line: Value, importer: &Importer, changes: &mut Changes) -> Result<Option<Link>, String> {
    let mut line = fields::object(line)?;
    let mut metadata = fields::metadata(&line);
    if let Some(Value::Object(ours)) = metadata.shift_remove(OURS) {
        let mut shape = ours;
        take(&mut line, &SHARED, &mut shape);
        let shape: LinkShape = serde_json::from_value(Value::Object(shape))
            .map_err(|error| format!("metadata.{OURS}: {}", why(&error)))?;
        return Ok(Some(shape.into()));
    }
    let ends = [needed(&line, "source_id")?, needed(&line, "target_id")?];
    // The memories say how many ids were renamed.
    let [source, target] = ends.map(|end| MemoryId::from_uuid(uuid(&end, &mut Changes::default())));
    if source == target {
        changes.self_links_dropped += 1;
        return Ok(None);
    }
    let word = needed(&line, "relationship")?.trim().to_lowercase();
    let relationship = Relationship::from_str(&word).unwrap_or(Relationship::RelatesTo);
    let replaced = relationship.word() != word;
    changes.relationships_replaced += u64::from(replaced);
    let reason = match text(&metadata, "reason") {
        _ if replaced => format!("'{word}' in the imported file"),
        Ok(reason) => reason,
        Err(_) => String::new(),
    };
    let given = text(&line, "id")?;
    let given = if given.trim().is_empty() {
        format!("{source}/{relationship}/{target}")
    } else {
        given
    };
    let created_at = time(&line, "created_at")?.unwrap_or(importer.at);
    let mut terms = texts(&line, "shared_entities").unwrap_or_default();
    terms.truncate(TERMS_MAX);
    Ok(Some(Link {
        id: LinkId::from_uuid(uuid(&given, changes)),
        source,
        target,
        relationship,
        weight_thousandths: weight(&line)?,
        confidence: confidence(&line, &metadata),
        origin: Origin::Import,
        reason: cut(reason, NOTE_BYTES_MAX, changes),
        shared_terms: terms
            .into_iter()
            .map(|term| cut(term, TERM_BYTES_MAX, changes))
            .collect(),
        author: importer.author.clone(),
        created_at,
        version: 1,
        resolution: relationship
            .is_conflict()
            .then(|| resolution(&metadata, [source, target], changes)),
    }))
}

fn weight(line: &Object) -> Result<u32, String> {
    match line.get("weight") {
        None | Some(Value::Null) => Ok(1_000),
        Some(value) => {
            let weight = value.as_f64().filter(|weight| (0.0..=1.0).contains(weight));
            let weight = weight.ok_or("weight: expected a number from 0 to 1")?;
            Ok((0..=1_000u32)
                .min_by_key(|thousandths| {
                    let distance = (f64::from(*thousandths) / 1000.0 - weight).abs();
                    // Order of positive floats is the order of their bits.
                    distance.to_bits()
                })
                .unwrap_or(1_000))
        }
    }
}

/// A word, else a number, else what a link without an automatic origin is.
fn confidence(line: &Object, metadata: &Object) -> Confidence {
    let word = |object: &Object, field: &str| {
        let word = object.get(field).and_then(Value::as_str);
        word.and_then(|word| Confidence::from_str(word).ok())
    };
    let said = word(metadata, "edge_confidence").or_else(|| word(line, "confidence"));
    match metadata.get("edge_confidence").and_then(Value::as_f64) {
        Some(number) if number >= 0.7 => Confidence::Inferred,
        Some(_) => Confidence::Weak,
        None => said.unwrap_or_else(|| {
            let by_hand = ["origin", "source", "inferred_by"].iter().all(|field| {
                let origin = metadata.get(*field).and_then(Value::as_str).unwrap_or("manual");
                matches!(origin, "manual" | "store_edge" | "studio" | "")
            });
            if by_hand {
                Confidence::Explicit
            } else {
                Confidence::Inferred
            }
        }),
    }
}

fn resolution(metadata: &Object, ends: [MemoryId; 2], changes: &mut Changes) -> Resolution {
    if metadata.get("resolved").and_then(Value::as_bool) != Some(true) {
        return Resolution::open();
    }
    let winner = ["winner", "winner_id"].iter().find_map(|field| {
        let text = text(metadata, field).ok().filter(|text| !text.is_empty())?;
        Some(MemoryId::from_uuid(uuid(&text, &mut Changes::default())))
    });
    Resolution {
        resolved: true,
        winner: winner.filter(|winner| ends.contains(winner)),
        note: cut(
            text(metadata, "resolution_note").unwrap_or_default(),
            NOTE_BYTES_MAX,
            changes,
        ),
        stated: false,
        by: None,
        at: time(metadata, "resolved_at").ok().flatten(),
        loser_valid_to_before: None,
    }
}
