//! Sentences to vectors: an int8 BERT encoder without native libraries.
//!
//! Called by the leader before a proposal and by queries, on dedicated threads ([`EncoderPool`]). It never runs inside
//! apply: the vector travels in the command, because two machines may differ in its last bits. It never invents a
//! vector: a text that the model cannot read gets none.

mod kernel;
mod model;
pub mod pack;
mod pool;
mod tokenizer;
mod vector;
mod weights;

use std::borrow::Cow;

use parking_lot::Mutex;

use kernel::Engine;
use model::{Forward, Model, Observed, Scratch};
use tokenizer::{Tokenizer, Tokens};
use weights::Packed;

pub use kernel::{Kernel, KernelChoice, UnknownKernel};
pub use pool::{EncoderPool, PoolStopped, Priority, QueueFull, Receiver};
pub use vector::{BadVector, Vector};

/// Length of every vector.
pub const DIMENSIONS: usize = 384;

/// The sentence model and everything to run it; shared by `Arc`.
pub struct Encoder {
    model: Model,
    tokenizer: Tokenizer,
    engine: Engine,
    model_id: String,
    query_prefix: String,
    document_prefix: String,
    tokens_max: usize,
    /// As many as texts were ever encoded at the same time.
    spare: Mutex<Vec<Scratch>>,
}

/// What became of one text.
#[derive(Clone, PartialEq, Debug)]
pub struct Embedding {
    /// `None` when the text is empty or mostly in a script that the model does not know.
    pub vector: Option<Vector>,
    /// Tokens that the model saw, its start and end marks included.
    pub tokens: usize,
    /// The vector stands for the beginning of the text only.
    pub truncated: bool,
}

/// Why a model file cannot be used. The node then starts with words alone and says so.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error("this is not a packed model file; make one with `waggle model pack`")]
    NotAModel,
    #[error(
        "the model file has format {found}, this version reads {}; pack the model again",
        weights::FORMAT_VERSION
    )]
    FormatVersion { found: u32 },
    #[error("the model file has {found} bytes and should have {claimed}; copy it again")]
    Length { found: u64, claimed: u64 },
    #[error("the model file's checksum does not match its content; copy it again")]
    Checksum,
    #[error("the model file's manifest cannot be read; pack the model again")]
    Manifest(#[source] serde_json::Error),
    #[error("the model file says {key} = {found}, which this encoder does not implement")]
    Unsupported { key: &'static str, found: usize },
    #[error("the model file's section {name} {problem}; pack the model again")]
    Section { name: String, problem: &'static str },
    #[error("the model file's tokenizer cannot be used: {0}; pack the model again")]
    Tokenizer(String),
    #[error("this machine cannot run the kernel {kernel}; use detect")]
    KernelUnavailable { kernel: Kernel },
}

/// `include_bytes!` alone would align to 1; sections are read in whole cache lines.
#[repr(C, align(64))]
struct Aligned<Bytes: ?Sized>(Bytes);

static EMBEDDED: &Aligned<[u8]> = &Aligned(*include_bytes!("../../model/minilm-l6-v2.wgl"));

impl Encoder {
    /// The model inside this program, on the fastest kernel of this machine.
    pub fn embedded() -> Result<Encoder, ModelError> {
        Encoder::embedded_with(KernelChoice::Detect)
    }

    pub fn embedded_with(kernel: KernelChoice) -> Result<Encoder, ModelError> {
        Encoder::from_packed(Cow::Borrowed(&EMBEDDED.0), kernel)
    }

    pub fn from_packed(bytes: Cow<'static, [u8]>, kernel: KernelChoice) -> Result<Encoder, ModelError> {
        let engine = Engine::choose(kernel)?;
        let packed = Packed::parse(bytes)?;
        let tokenizer = Tokenizer::load(&packed)?;
        let manifest = &packed.manifest;
        Ok(Encoder {
            engine,
            tokenizer,
            model_id: model_id(&manifest.name, &packed.checksum),
            query_prefix: manifest.query_prefix.clone(),
            document_prefix: manifest.document_prefix.clone(),
            tokens_max: manifest.tokens_max,
            model: Model::load(packed)?,
            spare: Mutex::new(Vec::new()),
        })
    }

    /// Name, format and hash of the weights. Vectors are comparable only under the same id.
    pub fn model_id(&self) -> &str {
        &self.model_id
    }

    pub fn kernel(&self) -> Kernel {
        self.engine.kernel()
    }

    /// What the caller puts before a query, for models that were trained so; mostly empty.
    pub fn query_prefix(&self) -> &str {
        &self.query_prefix
    }

    /// What the caller puts before a text to be found.
    pub fn document_prefix(&self) -> &str {
        &self.document_prefix
    }

    /// The longest input, marks included; what follows is cut.
    pub fn tokens_max(&self) -> usize {
        self.tokens_max
    }

    /// Blocks for milliseconds: for dedicated threads, not for async tasks.
    pub fn embed(&self, text: &str) -> Embedding {
        let tokens = self.tokenizer.encode(text);
        let vector = if tokens.carry_meaning() {
            self.encode(&tokens)
        } else {
            None
        };
        Embedding {
            vector,
            tokens: tokens.ids.len(),
            truncated: tokens.truncated,
        }
    }

    /// The vector even of a text that [`embed`](Self::embed) would leave without one. For comparing with the original
    /// model; such a vector says nothing about the text.
    pub fn embed_regardless(&self, text: &str) -> Option<Vector> {
        self.encode(&self.tokenizer.encode(text))
    }

    /// Tokens of the whole text, marks included, however long it is.
    pub fn count_tokens(&self, text: &str) -> usize {
        self.tokenizer.count(text)
    }

    /// The ids that the model would see.
    pub fn token_ids(&self, text: &str) -> Vec<u32> {
        self.tokenizer.encode(text).ids
    }

    /// The largest input of every channel of every matrix over these texts.
    fn observe(&self, texts: &[&str]) -> Observed {
        let mut scratch = Scratch::default();
        scratch.observe(&self.model);
        for text in texts {
            self.engine.forward(Forward {
                model: &self.model,
                ids: &self.tokenizer.encode(text).ids,
                scratch: &mut scratch,
            });
        }
        scratch.take_observed()
    }

    fn encode(&self, tokens: &Tokens) -> Option<Vector> {
        let mut scratch = self.spare.lock().pop().unwrap_or_default();
        self.engine.forward(Forward {
            model: &self.model,
            ids: &tokens.ids,
            scratch: &mut scratch,
        });
        let vector = Vector::from_floats(&scratch.pooled);
        self.spare.lock().push(scratch);
        vector
    }
}

/// Eight bytes of the hash: enough that no two models of one cluster meet, short enough to read.
fn model_id(name: &str, checksum: &[u8; 32]) -> String {
    use std::fmt::Write as _;
    let mut id = format!("{name}/i8-{}/", weights::FORMAT_VERSION);
    for byte in &checksum[..8] {
        let _ = write!(id, "{byte:02x}");
    }
    id
}

#[cfg(test)]
mod tests;
