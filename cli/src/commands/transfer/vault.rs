//! A folder of notes as one ZIP, in a file without a name. What is packed is decided in waggle-formats, as for every other
//! reader of vaults.

use std::fs::{self, File};
use std::io::{BufWriter, Seek as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use waggle_formats::vault::{ArchiveLimits, BASE_PATH, FILE_BYTES_MAX, Packer, belongs};

/// Deepest folder below the vault.
const DEPTH_MAX: usize = 32;

pub(super) fn pack(folder: &Path) -> Result<File> {
    let mut files = Vec::new();
    collect(folder, "", 0, &mut files)?;
    files.sort();
    ensure!(
        files.iter().any(|(path, _)| path != BASE_PATH),
        "{} has no .md file in it",
        folder.display()
    );
    let mut packer = Packer::new(BufWriter::new(tempfile::tempfile().context("make a temporary file")?));
    for (path, place) in &files {
        let read = fs::read_to_string(place).with_context(|| format!("read {}", place.display()))?;
        packer.put(path, &read)?;
    }
    let mut file = packer.finish()?.into_inner().context("write a temporary file")?;
    file.rewind().context("read a temporary file")?;
    Ok(file)
}

/// The files below a folder, with their paths in the vault. Links are refused: they could lead anywhere.
fn collect(folder: &Path, prefix: &str, depth: usize, files: &mut Vec<(String, PathBuf)>) -> Result<()> {
    ensure!(depth <= DEPTH_MAX, "{} is too deep below the vault", folder.display());
    let context = || format!("read {}", folder.display());
    for entry in fs::read_dir(folder).with_context(context)? {
        let entry = entry.with_context(context)?;
        let place = entry.path();
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else {
            bail!("the name of {} is no UTF-8", place.display());
        };
        let path = format!("{prefix}{name}");
        let kind = entry.file_type().with_context(context)?;
        if kind.is_dir() {
            // What editors keep in folders of their own is not looked at.
            if path == ".waggle" || belongs(&format!("{path}/note.md"))? {
                collect(&place, &format!("{path}/"), depth + 1, files)?;
            }
            continue;
        }
        if !belongs(&path)? {
            continue;
        }
        ensure!(kind.is_file(), "{} is no plain file", place.display());
        let bytes = entry.metadata().with_context(context)?.len();
        let bytes_max = u64::try_from(FILE_BYTES_MAX)?;
        ensure!(
            path == BASE_PATH || bytes <= bytes_max,
            "{} has more than {bytes_max} bytes; split it",
            place.display()
        );
        files.push((path, place));
        let files_max = ArchiveLimits::UPLOAD.files_max;
        ensure!(
            files.len() <= files_max + 1,
            "the vault has more than {files_max} files"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(folder: &Path) -> Result<Vec<String>> {
        let mut files = Vec::new();
        collect(folder, "", 0, &mut files)?;
        let mut paths: Vec<String> = files.into_iter().map(|(path, _)| path).collect();
        paths.sort();
        Ok(paths)
    }

    #[test]
    fn notes_and_the_base_are_packed_and_nothing_else() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let put = |path: &str| -> Result<()> {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().context("find the folder")?)?;
            Ok(fs::write(path, "text")?)
        };
        assert!(pack(folder.path()).is_err(), "an empty folder is no vault");
        for path in [
            "a/b.md",
            ".waggle/vault.json",
            ".obsidian/app.json",
            ".git/HEAD",
            "a/.DS_Store",
        ] {
            put(path)?;
        }
        assert_eq!(packed(folder.path())?, [".waggle/vault.json", "a/b.md"]);
        assert!(waggle_formats::vault::is_zip_of_notes(pack(folder.path())?)?);
        put("a/picture.png")?;
        let refused = packed(folder.path()).expect_err("a picture").to_string();
        assert!(refused.contains("a/picture.png"), "{refused}");
        Ok(())
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_refused() -> Result<()> {
        let folder = tempfile::tempdir()?;
        std::os::unix::fs::symlink("/etc/hostname", folder.path().join("x.md"))?;
        assert!(packed(folder.path()).is_err());
        Ok(())
    }
}
