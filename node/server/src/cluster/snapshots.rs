//! Snapshots between nodes: files in pieces, each file kept once it is complete, so that a broken transfer goes on with the
//! first file that is missing. The snapshot is named by the hash of its manifest; the manifest is sent last, and
//! installing checks every hash again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use tokio::fs::{self, File};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};
use waggle_memory::meta::ShardId;
use waggle_proto::wire::snapshot_piece::{FileEnd, FileStart, Install, Piece, SnapshotHead};
use waggle_proto::wire::{SnapshotPiece, SnapshotProgressReply, SnapshotProgressRequest};
use waggle_shard::{CallKind, Frame, SnapshotFiles, Target, WireError};

use super::Peers;
use crate::error::CallError;

/// Bytes of one piece.
const PIECE_BYTES: usize = 256 * 1024;
const PIECES_WAITING_MAX: usize = 8;
const FILES_MAX: usize = 64;
const MANIFEST: &str = "manifest";

/// Sends what the other side lacks, and then the message.
pub(super) async fn send(
    peers: &Peers,
    target: &Target,
    frame: Frame,
    files: &SnapshotFiles,
) -> Result<Bytes, WireError> {
    let lost = |why: String| WireError::Lost(why);
    let mut client = peers
        .cluster(target.member.node(), &target.member.address)
        .map_err(|error| WireError::Unreachable(error.to_string()))?;
    let directory = &*files.directory;
    let manifest = fs::read(directory.join(MANIFEST)).await;
    let manifest = manifest.map_err(|error| lost(format!("read the manifest: {error}")))?;
    let snapshot = blake3_name(&manifest);
    let names = names_in(directory).await.map_err(lost)?;
    let progress = client
        .snapshot_progress(SnapshotProgressRequest {
            shard: target.shard.0,
            snapshot: snapshot.clone(),
        })
        .await
        .map_err(|status| lost(status.message().to_owned()))?;
    let there = progress.into_inner().complete_files;
    let missing: Vec<String> = names.into_iter().filter(|name| !there.contains(name)).collect();

    let (pieces, receive) = mpsc::channel(PIECES_WAITING_MAX);
    let head = SnapshotHead {
        shard: target.shard.0,
        to_replica: target.to,
        snapshot,
    };
    let feeding = feed(pieces, head, directory, missing, frame.body);
    let sending = client.send_snapshot(ReceiverStream::new(receive));
    let (fed, answer) = tokio::join!(feeding, sending);
    match (answer, fed) {
        (Ok(answer), _) => Ok(answer.into_inner().body.into()),
        (Err(_), Err(why)) => Err(lost(why)),
        (Err(status), Ok(())) => Err(lost(status.message().to_owned())),
    }
}

async fn feed(
    pieces: mpsc::Sender<SnapshotPiece>,
    head: SnapshotHead,
    directory: &Path,
    names: Vec<String>,
    body: Bytes,
) -> Result<(), String> {
    let put = |piece: Piece| {
        let pieces = &pieces;
        async move {
            let sent = pieces.send(SnapshotPiece { piece: Some(piece) }).await;
            sent.map_err(|_| "the receiver has ended the transfer".to_owned())
        }
    };
    put(Piece::Head(head)).await?;
    for name in names {
        let path = directory.join(&name);
        let failed = |error: std::io::Error| format!("read {}: {error}", path.display());
        let mut file = File::open(&path).await.map_err(failed)?;
        let bytes = file.metadata().await.map_err(failed)?.len();
        put(Piece::File(FileStart { name, bytes })).await?;
        loop {
            let mut piece = vec![0; PIECE_BYTES];
            let count = file.read(&mut piece).await.map_err(failed)?;
            if count == 0 {
                break;
            }
            piece.truncate(count);
            put(Piece::Data(piece)).await?;
        }
        put(Piece::End(FileEnd {})).await?;
    }
    put(Piece::Install(Install { body: body.into() })).await
}

/// Names of a snapshot's files, the manifest last: where it is, all others are.
async fn names_in(directory: &Path) -> Result<Vec<String>, String> {
    let failed = |error: std::io::Error| format!("list {}: {error}", directory.display());
    let mut entries = fs::read_dir(directory).await.map_err(failed)?;
    let mut names = Vec::new();
    while let Some(entry) = entries.next_entry().await.map_err(failed)? {
        names.extend(entry.file_name().into_string().ok().filter(|name| name != MANIFEST));
    }
    names.sort();
    names.push(MANIFEST.to_owned());
    Ok(names)
}

fn blake3_name(manifest: &[u8]) -> String {
    blake3::hash(manifest).to_hex().to_string()
}

/// Where snapshots arrive.
pub(crate) struct Incoming {
    home: PathBuf,
    /// At most one arrives at a time.
    turn: Arc<Semaphore>,
}

/// A snapshot that is here completely.
pub(crate) struct Arrived {
    pub(crate) shard: ShardId,
    pub(crate) replica: u64,
    pub(crate) frame: Frame,
    pub(crate) files: SnapshotFiles,
}

impl Incoming {
    pub(crate) fn new(home: PathBuf) -> Self {
        Self {
            home,
            turn: Arc::new(Semaphore::new(1)),
        }
    }

    fn directory(&self, shard: u32, snapshot: &str) -> Result<PathBuf, CallError> {
        let is_hash = snapshot.len() == 64 && snapshot.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hash {
            return Err(CallError::invalid("snapshot", "is the hash of a manifest"));
        }
        Ok(self.home.join(shard.to_string()).join(snapshot))
    }

    pub(crate) async fn progress(&self, request: &SnapshotProgressRequest) -> Result<SnapshotProgressReply, CallError> {
        let directory = self.directory(request.shard, &request.snapshot)?;
        let mut complete_files = Vec::new();
        if let Ok(mut entries) = fs::read_dir(directory).await {
            while let Ok(Some(entry)) = entries.next_entry().await {
                let name = entry.file_name().into_string().unwrap_or_default();
                if is_file_name(&name) {
                    complete_files.push(name);
                }
            }
        }
        Ok(SnapshotProgressReply { complete_files })
    }

    /// Takes one transfer in. What arrived stays when it breaks; what another snapshot of the shard left is removed first.
    /// `bytes_max` bounds all files together.
    pub(crate) async fn receive(
        &self,
        pieces: &mut Streaming<SnapshotPiece>,
        bytes_max: u64,
    ) -> Result<Arrived, Status> {
        let Ok(_turn) = self.turn.try_acquire() else {
            return Err(
                CallError::unavailable("another snapshot is arriving", std::time::Duration::from_secs(1)).into(),
            );
        };
        let Some(Piece::Head(head)) = next(pieces).await? else {
            return Err(CallError::invalid("piece", "a transfer begins with its head").into());
        };
        let directory = self.directory(head.shard, &head.snapshot)?;
        self.remove_others(head.shard, &directory).await;
        let failed = |error: std::io::Error| Status::from(CallError::halted("receive a snapshot", &error));
        fs::create_dir_all(&directory).await.map_err(failed)?;
        let (mut left, mut count) = (bytes_max, 0);
        loop {
            match next(pieces).await? {
                Some(Piece::File(file)) => {
                    count += 1;
                    if !is_file_name(&file.name) || count > FILES_MAX || file.bytes > left {
                        return Err(CallError::invalid(
                            "file",
                            "has a strange name, or the files are too many or too large",
                        )
                        .into());
                    }
                    left -= file.bytes;
                    receive_file(pieces, &directory, &file).await?;
                }
                Some(Piece::Install(install)) => {
                    let frame = Frame {
                        kind: CallKind::Snapshot,
                        body: install.body.into(),
                    };
                    return Ok(Arrived {
                        shard: ShardId(head.shard),
                        replica: head.to_replica,
                        frame,
                        files: SnapshotFiles {
                            directory: directory.into(),
                        },
                    });
                }
                _ => return Err(CallError::invalid("piece", "is out of order").into()),
            }
        }
    }

    /// After a snapshot was installed, or its shard left.
    pub(crate) async fn remove(&self, shard: ShardId) {
        let _ = fs::remove_dir_all(self.home.join(shard.0.to_string())).await;
    }

    async fn remove_others(&self, shard: u32, keep: &Path) {
        let Ok(mut entries) = fs::read_dir(self.home.join(shard.to_string())).await else {
            return;
        };
        while let Ok(Some(entry)) = entries.next_entry().await {
            if entry.path() != keep {
                let _ = fs::remove_dir_all(entry.path()).await;
            }
        }
    }
}

async fn next(pieces: &mut Streaming<SnapshotPiece>) -> Result<Option<Piece>, Status> {
    Ok(pieces.message().await?.and_then(|piece| piece.piece))
}

/// Under another name until it is complete and on the disk.
async fn receive_file(
    pieces: &mut Streaming<SnapshotPiece>,
    directory: &Path,
    start: &FileStart,
) -> Result<(), Status> {
    let (part, whole) = (
        directory.join(format!("{}.part", start.name)),
        directory.join(&start.name),
    );
    let failed = |error: std::io::Error| Status::from(CallError::halted("receive a snapshot", &error));
    let mut file = File::create(&part).await.map_err(failed)?;
    let mut left = start.bytes;
    loop {
        match next(pieces).await? {
            Some(Piece::Data(data)) if data.len() as u64 <= left => {
                left -= data.len() as u64;
                file.write_all(&data).await.map_err(failed)?;
            }
            Some(Piece::End(_)) if left == 0 => break,
            _ => return Err(CallError::invalid("piece", "is out of order, or the file has another size").into()),
        }
    }
    file.sync_all().await.map_err(failed)?;
    fs::rename(&part, &whole).await.map_err(failed)
}

/// A plain name: nothing that leads out of the directory, and no unfinished file.
fn is_file_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    let stem = name.strip_suffix(".rows").unwrap_or(name);
    !stem.is_empty() && stem.len() <= 32 && stem.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_are_files_of_a_snapshot() {
        for good in ["manifest", "state.rows", "raft_log.rows"] {
            assert!(is_file_name(good), "{good}");
        }
        for bad in [
            "",
            "..",
            "../x",
            "state.rows.part",
            "a/b",
            "/etc",
            ".rows",
            "State.rows",
            "a\0b",
        ] {
            assert!(!is_file_name(bad), "{bad:?}");
        }
    }
}
