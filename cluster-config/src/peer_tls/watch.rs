//! Noticing renewed files, and certificates that come to their end.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use waggle_memory::time::Millis;
use xxhash_rust::xxh3::Xxh3;

use super::PeerTls;
use crate::certificates::CertificateError;

/// Between two looks at the files: three short reads.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// Somebody may be copying the files at this moment, one after the other.
const COPYING_PAUSE: Duration = Duration::from_millis(300);
const ATTEMPTS: u32 = 3;
/// From when on the log reminds of the end of a certificate, and how often.
const REMIND_WITHIN: i64 = 14 * Millis::DAY;
const REMIND_INTERVAL: Duration = Duration::from_secs(24 * 3600);

impl PeerTls {
    /// Takes renewed files into use, until `stop`; `now` asks for a look at once. Whoever serves runs it as a task.
    pub async fn watch(self, now: Arc<Notify>, stop: CancellationToken) {
        let mut watcher = Watcher {
            loaded: self.fingerprint(),
            refused: None,
            may_become_good: false,
            reminded_at: None,
            tls: self,
        };
        let mut asked = false;
        loop {
            watcher.look(asked).await;
            asked = tokio::select! {
                () = tokio::time::sleep(LOOK_INTERVAL) => false,
                () = now.notified() => true,
                () = stop.cancelled() => return,
            };
        }
    }

    /// Of all that decides whether the files can be loaded, time apart.
    fn fingerprint(&self) -> u64 {
        let files = &self.0.files;
        let mut hash = Xxh3::new();
        for path in [&files.ca, &files.certificate, &files.key] {
            add(&mut hash, path);
        }
        hash.digest()
    }
}

struct Watcher {
    tls: PeerTls,
    loaded: u64,
    /// The last pair that was refused: it is complained of once.
    refused: Option<u64>,
    /// It is refused only because its time has not begun.
    may_become_good: bool,
    reminded_at: Option<Duration>,
}

impl Watcher {
    async fn look(&mut self, asked: bool) {
        let found = self.read(PeerTls::fingerprint).await;
        let is_known = found == self.loaded || (self.refused == Some(found) && !self.may_become_good);
        if asked || !is_known {
            self.reload(asked).await;
        } else if found == self.loaded {
            self.refused = None;
        }
        self.remind();
    }

    async fn reload(&mut self, asked: bool) {
        for attempt in 1..=ATTEMPTS {
            // The fingerprint first: what changes after it is found by the next look.
            let (found, reloaded) = self.read(|tls| (tls.fingerprint(), tls.reload())).await;
            match reloaded {
                Ok(()) => {
                    (self.loaded, self.refused, self.reminded_at) = (found, None, None);
                    let material = self.tls.material();
                    tracing::info!(
                        subject = %material.subject, expires_at = %material.expires_at,
                        "certificate taken into use for new connections"
                    );
                    return;
                }
                Err(_) if attempt < ATTEMPTS => tokio::time::sleep(COPYING_PAUSE).await,
                Err(error) => {
                    let is_new = self.refused.replace(found) != Some(found);
                    self.may_become_good = matches!(error, CertificateError::NotYet { .. });
                    if is_new || asked {
                        tracing::warn!(%error, "the changed certificate files cannot be used; the old ones stay in use");
                    }
                }
            }
        }
    }

    /// Files may lie on a slow disk.
    async fn read<T: Send + 'static>(&self, read: impl Fn(&PeerTls) -> T + Send + 'static) -> T {
        let tls = self.tls.clone();
        match tokio::task::spawn_blocking(move || read(&tls)).await {
            Ok(found) => found,
            Err(failed) => std::panic::resume_unwind(failed.into_panic()),
        }
    }

    fn remind(&mut self) {
        let material = self.tls.material();
        seconds("own", material.expires_at);
        seconds("authority", material.authority_expires_at);
        let clock = &self.tls.0.clock;
        let left = material.expires_at.0.saturating_sub(clock.wall().0);
        let reminded_lately = self
            .reminded_at
            .is_some_and(|at| clock.monotonic().saturating_sub(at) < REMIND_INTERVAL);
        if left > REMIND_WITHIN || reminded_lately {
            return;
        }
        self.reminded_at = Some(clock.monotonic());
        let (subject, expires_at) = (material.subject, material.expires_at);
        if left > 0 {
            tracing::warn!(%subject, %expires_at, days = left / Millis::DAY, "the certificate ends soon; run `waggle cert renew`");
        } else {
            tracing::error!(%subject, %expires_at, "the certificate has ended: no new connection works; run `waggle cert renew`");
        }
    }
}

fn seconds(kind: &'static str, at: Millis) {
    // Exact: seconds since the epoch are far below 2^53.
    metrics::gauge!("waggle_certificate_expires_at_seconds", "kind" => kind).set((at.0 / 1_000) as f64);
}

fn add(hash: &mut Xxh3, path: &Path) {
    match fs::read(path) {
        Ok(bytes) => {
            hash.update(&bytes.len().to_le_bytes());
            hash.update(&bytes);
        }
        Err(error) => hash.update(error.to_string().as_bytes()),
    }
    hash.update(&mode(path).to_le_bytes());
}

/// A key that others may read is refused, so a change of that is a change.
#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(path).map(|metadata| metadata.mode()).unwrap_or(0)
}

#[cfg(not(unix))]
fn mode(_path: &Path) -> u32 {
    0
}
