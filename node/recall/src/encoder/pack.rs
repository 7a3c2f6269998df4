//! Makes the packed file from a directory with model.safetensors, tokenizer.json and config.json, as sentence models are
//! published. Runs on an operator's explicit command only. It refuses what the encoder does not implement, naming the
//! key, rather than packing a model that would give other vectors than its authors meant.

mod config;
mod quantise;
mod safetensors;
mod spread;

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::DIMENSIONS;
use super::weights::{
    FORMAT_VERSION, HEADER_BYTES, MAGIC, Manifest, SECTION_ALIGNMENT, SPREAD, Section, SectionKind, VOCABULARY,
};
use config::Described;
use safetensors::Tensors;

/// The files of a model and the weights they were first packed from: sha256, in hexadecimal.
const KNOWN_MODELS: [KnownModel; 1] = [KnownModel {
    name: "all-minilm-l6-v2",
    weights: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    tokenizer: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    config: "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
}];

/// Larger files are refused before they are read.
const FILE_BYTES_MAX: u64 = 2 << 30;

struct KnownModel {
    name: &'static str,
    weights: &'static str,
    tokenizer: &'static str,
    config: &'static str,
}

/// What the directory does not say.
#[derive(Clone, Debug, Default)]
pub struct PackOptions {
    /// Becomes the first part of the model id.
    pub name: String,
    pub query_prefix: String,
    pub document_prefix: String,
}

/// A packed file and what went into it.
pub struct PackedModel {
    pub bytes: Vec<u8>,
    /// File name and sha256, for the operator to compare.
    pub sources: Vec<(&'static str, String)>,
    /// Whether all sources are those of a model known by this name.
    pub known: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum PackError {
    #[error("read {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{} is larger than {FILE_BYTES_MAX} bytes", path.display())]
    TooLarge { path: PathBuf },
    #[error("{file} is not what the known model {name} has: sha256 {found}, expected {expected}")]
    OtherFile {
        file: &'static str,
        name: String,
        found: String,
        expected: &'static str,
    },
    #[error("{file}: {key} is {found}, which this encoder does not implement")]
    Unsupported {
        file: &'static str,
        key: String,
        found: String,
    },
    #[error("{file} cannot be read: {problem}")]
    Malformed { file: &'static str, problem: String },
    #[error("model.safetensors: tensor {tensor} {problem}")]
    Tensor { tensor: String, problem: &'static str },
    #[error("the packed model cannot be run")]
    Unusable(#[source] super::ModelError),
}

/// Reads a directory and gives the bytes of the packed file.
pub fn pack_directory(directory: &Path, options: &PackOptions) -> Result<PackedModel, PackError> {
    let weights = read(directory, config::WEIGHTS_FILE)?;
    let tokenizer = read(directory, config::TOKENIZER_FILE)?;
    let config = read(directory, config::CONFIG_FILE)?;
    let sources = vec![
        (config::WEIGHTS_FILE, sha256(&weights)),
        (config::TOKENIZER_FILE, sha256(&tokenizer)),
        (config::CONFIG_FILE, sha256(&config)),
    ];
    let known = KNOWN_MODELS.iter().find(|known| known.name == options.name);
    if let Some(known) = known {
        let expected = [known.weights, known.tokenizer, known.config];
        for ((file, found), expected) in sources.iter().zip(expected) {
            if found != expected {
                return Err(PackError::OtherFile {
                    file,
                    name: known.name.to_owned(),
                    found: found.clone(),
                    expected,
                });
            }
        }
    }
    let pooling = read_if_present(directory, config::POOLING_FILE)?;
    let lengths = read_if_present(directory, config::LENGTH_FILE)?;
    let described = Described::parse(&config, &tokenizer, pooling.as_deref(), lengths.as_deref())?;
    let tensors = Tensors::parse(&weights)?;
    // Once with copies of any channels, which is a correct model already, to see which channels need them.
    let draft = assemble(&described, &tensors, &[], options)?;
    let spread = spread::from_outliers(draft)?;
    let bytes = assemble(&described, &tensors, &spread, options)?;
    Ok(PackedModel {
        bytes,
        sources,
        known: known.is_some(),
    })
}

fn assemble(
    described: &Described,
    tensors: &Tensors<'_>,
    spread: &[[u16; SPREAD]],
    options: &PackOptions,
) -> Result<Vec<u8>, PackError> {
    let mut manifest = Manifest {
        name: options.name.clone(),
        width: DIMENSIONS,
        layers: described.layers,
        heads: super::model::HEADS,
        inner: described.inner,
        tokens_max: described.tokens_max,
        norm_epsilon: described.norm_epsilon,
        pooling: super::weights::Pooling::Mean,
        normalised: true,
        query_prefix: options.query_prefix.clone(),
        document_prefix: options.document_prefix.clone(),
        tokenizer: described.tokenizer.clone(),
        sections: Vec::new(),
    };
    let vocabulary = &described.vocabulary;
    let mut parts = vec![Part {
        name: VOCABULARY.to_owned(),
        kind: SectionKind::Lines,
        rows: vocabulary.len(),
        columns: 1,
        bytes: vocabulary.join("\n").into_bytes(),
    }];
    let mut spread = spread.iter().copied();
    quantise::sections(tensors, &manifest, vocabulary.len(), &mut spread, &mut parts)?;

    // Offsets stand in the manifest, whose length depends on them: lay out until the length no longer moves.
    let mut manifest_bytes = Vec::new();
    loop {
        let before = manifest_bytes.len();
        let mut offset = (HEADER_BYTES + before).next_multiple_of(SECTION_ALIGNMENT);
        manifest.sections.clear();
        for part in &parts {
            manifest.sections.push(part.placed_at(offset));
            offset = (offset + part.bytes.len()).next_multiple_of(SECTION_ALIGNMENT);
        }
        manifest_bytes = serde_json::to_vec(&manifest).map_err(|error| PackError::Malformed {
            file: "the manifest",
            problem: error.to_string(),
        })?;
        if manifest_bytes.len() == before {
            break;
        }
    }

    let mut file = vec![0; HEADER_BYTES];
    file.extend_from_slice(&manifest_bytes);
    for part in &parts {
        file.resize(file.len().next_multiple_of(SECTION_ALIGNMENT), 0);
        file.extend_from_slice(&part.bytes);
    }
    let length = file.len() as u64;
    file[..8].copy_from_slice(MAGIC);
    file[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    file[12..16].copy_from_slice(&(manifest_bytes.len() as u32).to_le_bytes());
    file[16..24].copy_from_slice(&length.to_le_bytes());
    let checksum: [u8; 32] = Sha256::digest(&file[HEADER_BYTES..]).into();
    file[32..64].copy_from_slice(&checksum);
    Ok(file)
}

/// A section before it has its place.
struct Part {
    name: String,
    kind: SectionKind,
    rows: usize,
    columns: usize,
    bytes: Vec<u8>,
}

impl Part {
    fn placed_at(&self, offset: usize) -> Section {
        Section {
            name: self.name.clone(),
            kind: self.kind,
            rows: self.rows,
            columns: self.columns,
            offset,
            bytes: self.bytes.len(),
        }
    }
}

fn read(directory: &Path, file: &str) -> Result<Vec<u8>, PackError> {
    let path = directory.join(file);
    let fail = |source| PackError::Read {
        path: path.clone(),
        source,
    };
    if std::fs::metadata(&path).map_err(fail)?.len() > FILE_BYTES_MAX {
        return Err(PackError::TooLarge { path });
    }
    std::fs::read(&path).map_err(fail)
}

fn read_if_present(directory: &Path, file: &str) -> Result<Option<Vec<u8>>, PackError> {
    match read(directory, file) {
        Err(PackError::Read { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

fn sha256(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for byte in Sha256::digest(bytes) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests;
