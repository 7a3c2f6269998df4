//! The packed model file: one header, one manifest, aligned sections, and the check that comes before any use.
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | `WGLMODEL` |
//! | 8..12 | format version, u32 |
//! | 12..16 | length of the manifest, u32 |
//! | 16..24 | length of the whole file, u64 |
//! | 24..32 | zero |
//! | 32..64 | sha256 of everything from byte 64 on |
//! | 64.. | manifest (JSON), then the sections, each starting at a multiple of 64 |
//!
//! Numbers are little endian. Matrices are stored in blocks of 16 outputs by 4 inputs ([`blocked_index`]), an order that
//! every kernel can walk as it is: nothing is laid out again at start, and the weights stay shared, clean file pages.

use std::borrow::Cow;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{DIMENSIONS, ModelError};

pub(super) const MAGIC: &[u8; 8] = b"WGLMODEL";
pub(super) const FORMAT_VERSION: u32 = 1;
pub(super) const HEADER_BYTES: usize = 64;
pub(super) const SECTION_ALIGNMENT: usize = 64;
/// Outputs and inputs of one block of a matrix: 64 bytes, a cache line and an AVX-512 register.
pub(super) const BLOCK_OUTPUTS: usize = 16;
pub(super) const BLOCK_INPUTS: usize = 4;
/// Every matrix has this many inputs more than the model: further copies of the channels with the largest values. An
/// activation that is shared out among `n` inputs needs an `n`th of the range, so a few outliers no longer take the
/// precision of all others. Costs 4 % of the work and brings the mean cosine from 0.993 to 0.998 for texts of few words.
pub(super) const SPREAD: usize = 16;
/// The kernels walk four blocks of outputs at once.
pub(super) const OUTPUTS_MULTIPLE: usize = 4 * BLOCK_OUTPUTS;

pub(super) const VOCABULARY: &str = "vocabulary";

/// Bounds for what a file may claim, so that a forged manifest cannot ask for absurd work.
const LAYERS_MAX: usize = 48;
const INNER_MAX: usize = 8 * DIMENSIONS;
pub(super) const TOKENS_MAX: usize = 512;

/// Where the weight from input `input` to output `output` lies in a matrix with `inputs` inputs.
pub(super) fn blocked_index(output: usize, input: usize, inputs: usize) -> usize {
    let block = (output / BLOCK_OUTPUTS) * (inputs / BLOCK_INPUTS) + input / BLOCK_INPUTS;
    block * BLOCK_OUTPUTS * BLOCK_INPUTS + (output % BLOCK_OUTPUTS) * BLOCK_INPUTS + input % BLOCK_INPUTS
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    pub(super) name: String,
    pub(super) width: usize,
    pub(super) layers: usize,
    pub(super) heads: usize,
    pub(super) inner: usize,
    pub(super) tokens_max: usize,
    pub(super) norm_epsilon: f32,
    pub(super) pooling: Pooling,
    pub(super) normalised: bool,
    pub(super) query_prefix: String,
    pub(super) document_prefix: String,
    pub(super) tokenizer: TokenizerRules,
    pub(super) sections: Vec<Section>,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Pooling {
    Mean,
}

/// The parts of a BERT tokenizer that differ between models; the vocabulary is a section.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TokenizerRules {
    pub(super) clean_text: bool,
    pub(super) split_cjk: bool,
    pub(super) strip_accents: Option<bool>,
    pub(super) lowercase: bool,
    pub(super) continuation: String,
    pub(super) word_chars_max: usize,
    pub(super) unknown: String,
    pub(super) start: String,
    pub(super) end: String,
    /// Written out in a text these become one token, as in the original tokenizer.
    pub(super) special: Vec<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Section {
    pub(super) name: String,
    pub(super) kind: SectionKind,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) offset: usize,
    pub(super) bytes: usize,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SectionKind {
    /// Lines of UTF-8; `rows` counts them, `columns` is 1.
    Lines,
    F32,
    U16,
    /// Row after row.
    I8Rows,
    /// In the order of [`blocked_index`].
    I8Blocked,
}

/// A file whose checksum, manifest and section bounds have been checked.
pub(super) struct Packed {
    pub(super) bytes: Cow<'static, [u8]>,
    pub(super) manifest: Manifest,
    pub(super) checksum: [u8; 32],
}

impl Packed {
    pub(super) fn parse(bytes: Cow<'static, [u8]>) -> Result<Packed, ModelError> {
        let header = bytes.get(..HEADER_BYTES).ok_or(ModelError::NotAModel)?;
        if !header.starts_with(MAGIC) {
            return Err(ModelError::NotAModel);
        }
        let version = read_u32(header, 8);
        if version != FORMAT_VERSION {
            return Err(ModelError::FormatVersion { found: version });
        }
        let claimed = u64::from(read_u32(header, 16)) | u64::from(read_u32(header, 20)) << 32;
        if claimed != bytes.len() as u64 {
            return Err(ModelError::Length {
                found: bytes.len() as u64,
                claimed,
            });
        }
        let checksum: [u8; 32] = Sha256::digest(&bytes[HEADER_BYTES..]).into();
        if header[32..64] != checksum {
            return Err(ModelError::Checksum);
        }
        let manifest_end = HEADER_BYTES + read_u32(header, 12) as usize;
        let manifest = bytes.get(HEADER_BYTES..manifest_end).ok_or(ModelError::NotAModel)?;
        let manifest: Manifest = serde_json::from_slice(manifest).map_err(ModelError::Manifest)?;
        manifest.check(bytes.len())?;
        Ok(Packed {
            bytes,
            manifest,
            checksum,
        })
    }

    /// The bytes of a section that must have exactly this kind and shape.
    pub(super) fn section(
        &self,
        name: &str,
        kind: SectionKind,
        rows: usize,
        columns: usize,
    ) -> Result<Range<usize>, ModelError> {
        let wrong = |problem| ModelError::Section {
            name: name.to_owned(),
            problem,
        };
        let section = self.manifest.section(name).ok_or(wrong("is missing"))?;
        if section.kind != kind || section.rows != rows || section.columns != columns {
            return Err(wrong("has another kind or shape"));
        }
        Ok(section.offset..section.offset + section.bytes)
    }

    pub(super) fn floats(&self, name: &str, rows: usize, columns: usize) -> Result<Box<[f32]>, ModelError> {
        let range = self.section(name, SectionKind::F32, rows, columns)?;
        let (quads, _) = self.bytes[range].as_chunks::<4>();
        let floats: Box<[f32]> = quads.iter().map(|quad| f32::from_le_bytes(*quad)).collect();
        if floats.iter().any(|x| !x.is_finite()) {
            return Err(ModelError::Section {
                name: name.to_owned(),
                problem: "holds a number that is not finite",
            });
        }
        Ok(floats)
    }

    /// Numbers of input channels, each below `channels`.
    pub(super) fn channels(&self, name: &str, count: usize, channels: usize) -> Result<Box<[u16]>, ModelError> {
        let range = self.section(name, SectionKind::U16, 1, count)?;
        let (pairs, _) = self.bytes[range].as_chunks::<2>();
        let numbers: Box<[u16]> = pairs.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
        if numbers.iter().any(|&number| usize::from(number) >= channels) {
            return Err(ModelError::Section {
                name: name.to_owned(),
                problem: "names a channel that does not exist",
            });
        }
        Ok(numbers)
    }

    pub(super) fn vocabulary_size(&self) -> usize {
        let section = self.manifest.section(VOCABULARY);
        section.map_or(0, |section| section.rows)
    }

    /// One word per line, in the order of the token ids.
    pub(super) fn vocabulary(&self) -> Result<&[u8], ModelError> {
        let rows = self.vocabulary_size();
        let range = self.section(VOCABULARY, SectionKind::Lines, rows, 1)?;
        Ok(&self.bytes[range])
    }
}

impl Manifest {
    pub(super) fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    fn check(&self, file_bytes: usize) -> Result<(), ModelError> {
        let refuse = |key: &'static str, found: usize| Err(ModelError::Unsupported { key, found });
        if self.width != DIMENSIONS {
            return refuse("width", self.width);
        }
        if self.layers == 0 || self.layers > LAYERS_MAX {
            return refuse("layers", self.layers);
        }
        if self.heads != super::model::HEADS {
            return refuse("heads", self.heads);
        }
        if self.inner == 0 || !self.inner.is_multiple_of(OUTPUTS_MULTIPLE) || self.inner > INNER_MAX {
            return refuse("inner", self.inner);
        }
        if self.tokens_max < 3 || self.tokens_max > TOKENS_MAX {
            return refuse("tokens_max", self.tokens_max);
        }
        if !self.normalised {
            return refuse("normalised", 0);
        }
        for section in &self.sections {
            section.check(file_bytes)?;
        }
        Ok(())
    }
}

impl Section {
    fn check(&self, file_bytes: usize) -> Result<(), ModelError> {
        let wrong = |problem| {
            Err(ModelError::Section {
                name: self.name.clone(),
                problem,
            })
        };
        let cells = self.rows.checked_mul(self.columns);
        let bytes = match self.kind {
            SectionKind::Lines => Some(self.bytes),
            SectionKind::F32 => cells.and_then(|cells| cells.checked_mul(4)),
            SectionKind::U16 => cells.and_then(|cells| cells.checked_mul(2)),
            SectionKind::I8Rows | SectionKind::I8Blocked => cells,
        };
        if bytes != Some(self.bytes) {
            return wrong("has another size than its shape");
        }
        if !self.offset.is_multiple_of(SECTION_ALIGNMENT) || self.offset < HEADER_BYTES {
            return wrong("is not aligned");
        }
        match self.offset.checked_add(self.bytes) {
            Some(end) if end <= file_bytes => Ok(()),
            _ => wrong("ends outside of the file"),
        }
    }
}

fn read_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
