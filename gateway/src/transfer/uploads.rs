//! Files that wait for their import, on this gateway's disk: streamed there, bounded in number, bytes and time, and gone
//! at the next start. An upload belongs to its tenant and author; its id says nothing and opens nothing for others.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::body::Body;
use http_body_util::BodyExt;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::fs::{self, File};
use tokio::io::AsyncWriteExt;
use uuid::Uuid;
use waggle_config::limits::{
    TRANSFER_TIME_MAX, UPLOAD_AGE_MAX, UPLOAD_BYTES_MAX, UPLOADS_BYTES_MAX, UPLOADS_PER_TENANT_MAX,
};
use waggle_memory::time::Millis;

use super::source::Source;
use crate::auth::Caller;
use crate::fault::Fault;
use crate::seal::{base62, keyed_hash};

const EXTENSION: &str = "upload";

/// One finished upload.
#[derive(Clone, Debug)]
pub(crate) struct Upload {
    pub(crate) id: String,
    pub(crate) size: u64,
    pub(crate) sha256: String,
    pub(crate) expires_at: Millis,
    path: PathBuf,
}

struct Kept {
    upload: Upload,
    tenant: String,
    principal: String,
    /// It was imported: kept for a repetition of the call, as long as nobody needs its place.
    used: bool,
}

#[derive(Default)]
struct State {
    kept: BTreeMap<String, Kept>,
    /// Uploads that are coming in, by tenant.
    coming: BTreeMap<String, usize>,
    bytes: u64,
}

impl State {
    fn of_tenant(&self, tenant: &str) -> usize {
        self.kept.values().filter(|kept| kept.tenant == tenant).count()
    }

    fn remove(&mut self, id: &str) {
        if let Some(kept) = self.kept.remove(id) {
            self.bytes = self.bytes.saturating_sub(kept.upload.size);
            // What cannot be removed now is removed at the next start.
            let _ = std::fs::remove_file(&kept.upload.path);
        }
    }

    /// Removes the used upload that would be gone first. False when there is none.
    fn remove_used(&mut self, of: impl Fn(&Kept) -> bool) -> bool {
        let used = self.kept.values().filter(|kept| kept.used && of(kept));
        let first = used.min_by_key(|kept| kept.upload.expires_at);
        let id = first.map(|kept| kept.upload.id.clone());
        id.inspect(|id| self.remove(id)).is_some()
    }
}

/// The spool directory of a gateway.
pub(crate) struct Uploads {
    dir: PathBuf,
    key: [u8; 32],
    state: Mutex<State>,
}

/// Gives its place and its bytes back when it is dropped unfinished.
struct Coming<'a> {
    uploads: &'a Uploads,
    tenant: String,
    path: PathBuf,
    bytes: u64,
    finished: bool,
}

impl Uploads {
    /// Makes the directory and removes what a former process left in it.
    pub(crate) fn open(dir: &Path, cluster_secret: &[u8]) -> io::Result<Self> {
        std::fs::create_dir_all(dir)?;
        for entry in std::fs::read_dir(dir)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == EXTENSION) {
                std::fs::remove_file(path)?;
            }
        }
        Ok(Self {
            dir: dir.to_owned(),
            key: keyed_hash(cluster_secret, &[b"waggle upload v1"]),
            state: Mutex::default(),
        })
    }

    /// Streams a body into the directory.
    pub(crate) async fn receive(&self, caller: &Caller, body: Body, now: Millis) -> Result<Upload, Fault> {
        self.sweep(now);
        let mut coming = self.begin(caller)?;
        let received = tokio::time::timeout(TRANSFER_TIME_MAX, stream(body, &mut coming)).await;
        let sha256 = match received {
            Ok(received) => received?,
            Err(_) => {
                return Err(Fault::new(
                    "malformed_request",
                    "the upload did not arrive within 10 minutes; send it again",
                ));
            }
        };
        Ok(coming.finish(caller, sha256, now))
    }

    fn begin(&self, caller: &Caller) -> Result<Coming<'_>, Fault> {
        let tenant = caller.tenant.as_str().to_owned();
        let mut state = self.state.lock();
        let coming = state.coming.get(&tenant).copied().unwrap_or_default();
        while state.of_tenant(&tenant) + coming >= UPLOADS_PER_TENANT_MAX {
            if !state.remove_used(|kept| kept.tenant == tenant) {
                return Err(Fault::new(
                    "limit_exceeded",
                    format!(
                        "this tenant has {UPLOADS_PER_TENANT_MAX} uploads that wait already; import one, or wait until \
                         its hour is over"
                    ),
                ));
            }
        }
        *state.coming.entry(tenant.clone()).or_default() += 1;
        Ok(Coming {
            path: self.dir.join(format!("{}.{EXTENSION}", Uuid::now_v7())),
            uploads: self,
            tenant,
            bytes: 0,
            finished: false,
        })
    }

    /// The file of an upload that this caller may import.
    pub(crate) fn find(&self, id: &str, caller: &Caller, now: Millis) -> Result<Source, Fault> {
        self.sweep(now);
        let state = self.state.lock();
        let kept = state
            .kept
            .get(id)
            .filter(|kept| kept.tenant == caller.tenant.as_str() && kept.principal == caller.principal);
        kept.map(|kept| Source::File(kept.upload.path.clone())).ok_or_else(gone)
    }

    /// A file without a name, for something that is written once and read once. Blocks.
    pub(crate) fn scratch(&self) -> Result<std::fs::File, Fault> {
        let path = self.dir.join(format!("{}.{EXTENSION}", Uuid::now_v7()));
        let opened = std::fs::File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .and_then(|file| std::fs::remove_file(&path).map(|()| file));
        opened.map_err(|error| {
            tracing::warn!(%error, "a scratch file cannot be made");
            Fault::unavailable(
                "the gateway has no room for the export; try again",
                Duration::from_secs(30),
            )
        })
    }

    /// An upload that nobody knows of any more.
    pub(crate) fn remove(&self, id: &str) {
        self.state.lock().remove(id);
    }

    /// An upload that was imported gives its place up when another one comes.
    pub(crate) fn set_used(&self, id: &str) {
        if let Some(kept) = self.state.lock().kept.get_mut(id) {
            kept.used = true;
        }
    }

    /// Removes what is too old.
    pub(crate) fn sweep(&self, now: Millis) {
        let mut state = self.state.lock();
        let old: Vec<String> = state
            .kept
            .iter()
            .filter(|(_, kept)| kept.upload.expires_at <= now)
            .map(|(id, _)| id.clone())
            .collect();
        for id in old {
            state.remove(&id);
        }
    }

    fn id_of(&self, path: &Path) -> String {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        base62(&keyed_hash(&self.key, &[name]), 43)
    }
}

impl Coming<'_> {
    /// Counts bytes that are about to be written.
    fn count(&mut self, bytes: usize) -> Result<(), Fault> {
        let more = u64::try_from(bytes).unwrap_or(u64::MAX);
        if self.bytes + more > limit(UPLOAD_BYTES_MAX) {
            metrics::counter!("waggle_gateway_rejected_requests_total", "reason" => "size").increment(1);
            return Err(Fault::new(
                "payload_too_large",
                format!("an upload may have {UPLOAD_BYTES_MAX} bytes, and more came; split the export by project"),
            ));
        }
        let mut state = self.uploads.state.lock();
        while state.bytes + more > limit(UPLOADS_BYTES_MAX) && state.remove_used(|_| true) {}
        if state.bytes + more > limit(UPLOADS_BYTES_MAX) {
            return Err(Fault::unavailable(
                "this gateway holds as many bytes of uploads as it may; upload again later",
                Duration::from_secs(60),
            ));
        }
        state.bytes += more;
        self.bytes += more;
        Ok(())
    }

    fn finish(mut self, caller: &Caller, sha256: String, now: Millis) -> Upload {
        self.finished = true;
        let age = i64::try_from(UPLOAD_AGE_MAX.as_millis()).unwrap_or(i64::MAX);
        let upload = Upload {
            id: self.uploads.id_of(&self.path),
            size: self.bytes,
            sha256,
            expires_at: now.plus(age),
            path: self.path.clone(),
        };
        let kept = Kept {
            upload: upload.clone(),
            tenant: self.tenant.clone(),
            principal: caller.principal.clone(),
            used: false,
        };
        self.uploads.state.lock().kept.insert(upload.id.clone(), kept);
        upload
    }
}

impl Drop for Coming<'_> {
    fn drop(&mut self) {
        let mut state = self.uploads.state.lock();
        if let Some(coming) = state.coming.get_mut(&self.tenant) {
            *coming -= 1;
            if *coming == 0 {
                state.coming.remove(&self.tenant);
            }
        }
        if !self.finished {
            state.bytes = state.bytes.saturating_sub(self.bytes);
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

async fn stream(mut body: Body, coming: &mut Coming<'_>) -> Result<String, Fault> {
    let failed = |error: io::Error| {
        tracing::warn!(%error, "an upload cannot be written");
        Fault::unavailable("the gateway cannot keep the upload; try again", Duration::from_secs(30))
    };
    let mut file = File::create_new(&coming.path).await.map_err(failed)?;
    restrict(&coming.path).await;
    let mut hasher = Sha256::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Fault::new("malformed_request", "the upload broke off; send it again"))?;
        if let Ok(data) = frame.into_data() {
            coming.count(data.len())?;
            hasher.update(&data);
            file.write_all(&data).await.map_err(failed)?;
        }
    }
    file.flush().await.map_err(failed)?;
    if coming.bytes == 0 {
        return Err(Fault::new("malformed_request", "the upload is empty"));
    }
    let digest: [u8; 32] = hasher.finalize().into();
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Nobody else on the machine reads it.
async fn restrict(path: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let _ = fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).await;
    }
}

fn limit(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// There is no such upload, for this caller.
pub(super) fn gone() -> Fault {
    Fault::new(
        "not_found",
        "there is no such upload here; uploads live one hour, on the gateway that took them: upload again",
    )
    .with_field("upload_id")
}
