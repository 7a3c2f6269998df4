//! A disk that can be filled.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// A small file system of its own.
pub struct Mount {
    path: PathBuf,
}

impl Mount {
    pub fn tmpfs(path: &Path, bytes: u64) -> Result<Self> {
        fs::create_dir_all(path)?;
        let output = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes},mode=0700"), "waggle-chaos"])
            .arg(path)
            .output()
            .context("run mount")?;
        ensure!(
            output.status.success(),
            "mount: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(Self { path: path.to_owned() })
    }

    fn ballast(&self) -> PathBuf {
        self.path.join("ballast")
    }

    pub(super) fn fill(&self) -> Result<u64> {
        use std::io::Write as _;
        let mut file = fs::File::create(self.ballast()).context("make the ballast")?;
        let piece = vec![0; 64 * 1024];
        let mut written = 0;
        // The last bytes one by one: nothing may fit any more.
        for size in [piece.len(), 4096] {
            while file.write_all(&piece[..size]).is_ok() {
                written += size as u64;
            }
        }
        Ok(written)
    }

    pub(super) fn free(&self) -> Result<()> {
        match fs::remove_file(self.ballast()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error).context("remove the ballast"),
            _ => Ok(()),
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // What somebody still uses goes when they end.
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.path).output();
    }
}
