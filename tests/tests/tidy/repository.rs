//! Reading the repository, and telling what is wrong with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use waggle_tests::workspace::root;

pub(crate) fn report(problems: Vec<String>) -> Result<()> {
    ensure!(
        problems.is_empty(),
        "{} problems:\n  {}",
        problems.len(),
        problems.join("\n  ")
    );
    Ok(())
}

pub(crate) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(root().join(path)).with_context(|| format!("read {}", path.display()))
}

/// Files that git knows or would take, without those that were deleted and not yet committed.
pub(crate) fn tracked_files() -> Result<Vec<PathBuf>> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(root())
        .output()
        .context("run git ls-files")?;
    ensure!(
        listed.status.success(),
        "git ls-files: {}",
        String::from_utf8_lossy(&listed.stderr)
    );
    let names = String::from_utf8(listed.stdout).context("read the file names of git")?;
    let mut files: Vec<PathBuf> = names.split_terminator('\0').map(PathBuf::from).collect();
    files.retain(|path| root().join(path).is_file());
    ensure!(!files.is_empty(), "git knows no files here");
    Ok(files)
}
