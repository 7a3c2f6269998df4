//! The vectors of the data set: made by the product's own encoder, and kept in a file between runs if wanted.
//!
//! A line of the file: key ("conversation/turn", or the question's id), scale and components, between tabs and spaces.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::Path;

use waggle_memory::memory::Vector;
use waggle_recall::encoder::Encoder;

use crate::{Failure, lines, text_of, turn_text};

/// The name under which the index holds them; there is only one model here.
pub(crate) const MODEL: &str = "evaluated";

/// Embeds every turn and every question.
pub(crate) fn embed(data: &Path) -> Result<HashMap<String, Vector>, Failure> {
    let encoder = Encoder::embedded()?;
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for line in lines(&data.join("memories.jsonl"))? {
        let key = format!("{}/{}", text_of(&line, "conv")?, text_of(&line, "id")?);
        texts.insert(key, format!("{}{}", encoder.document_prefix(), turn_text(&line)?));
    }
    for line in lines(&data.join("queries.jsonl"))? {
        let text = format!("{}{}", encoder.query_prefix(), text_of(&line, "question")?);
        texts.insert(text_of(&line, "qid")?.to_owned(), text);
    }
    let mut vectors = HashMap::new();
    for (key, text) in texts {
        if let Some(vector) = encoder.embed(&text).vector {
            let (scale_bits, components) = (vector.scale.to_bits(), vector.components.into_vec());
            vectors.insert(
                key,
                Vector {
                    model: MODEL.to_owned(),
                    scale_bits,
                    components,
                },
            );
        }
    }
    Ok(vectors)
}

pub(crate) fn read(file: &Path) -> Result<HashMap<String, Vector>, Failure> {
    let mut vectors = HashMap::new();
    for line in std::fs::read_to_string(file)?.lines() {
        let mut fields = line.split('\t');
        let (Some(key), Some(scale), Some(components)) = (fields.next(), fields.next(), fields.next()) else {
            return Err("a line of vectors is: key, scale, components".into());
        };
        let components = components.split(' ').map(str::parse).collect::<Result<Vec<i8>, _>>()?;
        let vector = Vector {
            model: MODEL.to_owned(),
            scale_bits: scale.parse::<f32>()?.to_bits(),
            components,
        };
        vectors.insert(key.to_owned(), vector);
    }
    Ok(vectors)
}

pub(crate) fn write(file: &Path, vectors: &HashMap<String, Vector>) -> Result<(), Failure> {
    let sorted: BTreeMap<&String, &Vector> = vectors.iter().collect();
    let mut text = String::new();
    for (key, vector) in sorted {
        write!(text, "{key}\t{}\t", f32::from_bits(vector.scale_bits))?;
        let components: Vec<String> = vector.components.iter().map(i8::to_string).collect();
        writeln!(text, "{}", components.join(" "))?;
    }
    Ok(std::fs::write(file, text)?)
}
