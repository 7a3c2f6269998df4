//! Embedding on the write path: in time, or later.

use std::time::Duration;

use waggle_memory::memory::{Vector, VectorDraft};
use waggle_recall::encoder::{Embedding, EncoderPool, Priority};

/// The encoder as calls see it. Without a usable model everything goes on by words alone, and says so.
#[derive(Clone)]
pub(crate) struct Embedder {
    pool: Option<EncoderPool>,
    model: String,
    kernel: String,
    wait_max: Duration,
}

impl Embedder {
    pub(crate) fn new(pool: EncoderPool, model: String, kernel: String, wait_max: Duration) -> Self {
        Self {
            pool: Some(pool),
            model,
            kernel,
            wait_max,
        }
    }

    pub(crate) fn lexical_only() -> Self {
        Self {
            pool: None,
            model: String::new(),
            kernel: String::new(),
            wait_max: Duration::ZERO,
        }
    }

    /// Id of the model; empty without one.
    pub(crate) fn model(&self) -> &str {
        &self.model
    }

    pub(crate) fn kernel(&self) -> &str {
        &self.kernel
    }

    pub(crate) fn is_available(&self) -> bool {
        self.pool.is_some()
    }

    pub(crate) fn queue_length(&self) -> usize {
        self.pool.as_ref().map_or(0, EncoderPool::queue_length)
    }

    /// Vectors for texts about to be stored. When the encoder is so far behind that they would wait too long, none is
    /// made: the text is committed at once, and the vectors follow.
    pub(crate) async fn for_write(&self, texts: Vec<String>) -> Vec<VectorDraft> {
        let count = texts.len();
        let Some(pool) = &self.pool else {
            return vec![VectorDraft::None; count];
        };
        let tokens: usize = texts.iter().map(|text| text.len() / 4 + 2).sum();
        if pool.estimated_wait(tokens) > self.wait_max {
            return vec![VectorDraft::Pending; count];
        }
        let Ok(receiver) = pool.submit(Priority::Write, texts) else {
            return vec![VectorDraft::Pending; count];
        };
        match receiver.wait().await {
            Ok(embeddings) => embeddings.into_iter().map(|embedding| self.draft(embedding)).collect(),
            Err(_) => vec![VectorDraft::Pending; count],
        }
    }

    /// Vectors for texts that were stored before; waits as long as it takes.
    pub(crate) async fn late(&self, texts: Vec<String>) -> Option<Vec<Option<Vector>>> {
        let receiver = self.pool.as_ref()?.submit(Priority::Write, texts).ok()?;
        let embeddings = receiver.wait().await.ok()?;
        Some(embeddings.into_iter().map(|embedding| self.vector(embedding)).collect())
    }

    /// The vector of a query; None without a model, for a text it has nothing to say about, or when the encoder cannot
    /// take more: words carry the answer then.
    pub(crate) async fn for_query(&self, text: String) -> Option<Vector> {
        let receiver = self.pool.as_ref()?.submit(Priority::Query, vec![text]).ok()?;
        let embedding = receiver.wait().await.ok()?.into_iter().next()?;
        self.vector(embedding)
    }

    fn draft(&self, embedding: Embedding) -> VectorDraft {
        self.vector(embedding).map_or(VectorDraft::None, VectorDraft::Ready)
    }

    /// A vector that passes the checks of the write path: nothing else gets into the log.
    fn vector(&self, embedding: Embedding) -> Option<Vector> {
        let vector = embedding.vector?;
        if let Err(bad) = vector.check() {
            metrics::counter!("waggle_embedding_failures_total", "reason" => "bad_vector").increment(1);
            tracing::warn!(%bad, "the encoder made an unusable vector");
            return None;
        }
        Some(Vector {
            model: self.model.clone(),
            scale_bits: vector.scale.to_bits(),
            components: vector.components.into_vec(),
        })
    }

    pub(crate) fn shutdown(&self) {
        if let Some(pool) = &self.pool {
            pool.shutdown();
        }
    }
}
