//! Reads the safetensors format: a length, a JSON table, then the numbers.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::PackError;
use super::config::WEIGHTS_FILE;

pub(super) struct Tensors<'a> {
    table: BTreeMap<String, Entry>,
    data: &'a [u8],
}

#[derive(Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (usize, usize),
}

impl<'a> Tensors<'a> {
    pub(super) fn parse(file: &'a [u8]) -> Result<Tensors<'a>, PackError> {
        let malformed = |problem: String| PackError::Malformed {
            file: WEIGHTS_FILE,
            problem,
        };
        let short = || malformed("it ends inside its own table".to_owned());
        let (length, rest) = file.split_first_chunk::<8>().ok_or_else(short)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| short())?;
        let (table, data) = rest.split_at_checked(length).ok_or_else(short)?;
        let table: BTreeMap<String, serde_json::Value> =
            serde_json::from_slice(table).map_err(|error| malformed(error.to_string()))?;
        let table = table
            .into_iter()
            .filter(|(name, _)| name != "__metadata__")
            .map(|(name, value)| serde_json::from_value(value).map(|entry| (name, entry)))
            .collect::<Result<_, _>>()
            .map_err(|error| malformed(error.to_string()))?;
        Ok(Tensors { table, data })
    }

    /// A tensor of exactly this shape, in f32. Some exports put the model's own name in front of every tensor.
    pub(super) fn floats(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, PackError> {
        let wrong = |problem| PackError::Tensor {
            tensor: name.to_owned(),
            problem,
        };
        let entry = self
            .table
            .get(name)
            .or_else(|| self.table.get(&format!("bert.{name}")))
            .ok_or(wrong("is missing"))?;
        if entry.dtype != "F32" {
            return Err(wrong("is not F32; convert the model first"));
        }
        if entry.shape != shape {
            return Err(wrong("has another shape than config.json says"));
        }
        let (from, to) = entry.data_offsets;
        let bytes = self.data.get(from..to).ok_or(wrong("lies outside of the file"))?;
        let (quads, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() || quads.len() != shape.iter().product::<usize>() {
            return Err(wrong("has another size than its shape"));
        }
        let floats: Vec<f32> = quads.iter().map(|quad| f32::from_le_bytes(*quad)).collect();
        if floats.iter().any(|x| !x.is_finite()) {
            return Err(wrong("holds a number that is not finite"));
        }
        Ok(floats)
    }

    /// Rows of a matrix with `columns` columns, however many there are.
    pub(super) fn rows(&self, name: &str) -> usize {
        let entry = self.table.get(name).or_else(|| self.table.get(&format!("bert.{name}")));
        entry.and_then(|entry| entry.shape.first()).copied().unwrap_or(0)
    }
}
