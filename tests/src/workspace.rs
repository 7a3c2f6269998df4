//! Where things lie: the repository, and the binary under test.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the tests lie one level below the root")
}

/// The `waggle` binary: `WAGGLE_BIN`, or the one that cargo put beside the running test.
pub fn binary() -> Result<PathBuf> {
    let path = match env::var_os("WAGGLE_BIN") {
        Some(path) => PathBuf::from(path),
        None => {
            let test = env::current_exe().context("find the path of the running test")?;
            let mut folder = test.parent().context("find the folder of the running test")?;
            if folder.ends_with("deps") {
                folder = folder.parent().context("find the target folder")?;
            }
            folder.join("waggle")
        }
    };
    ensure!(
        path.is_file(),
        "there is no binary at {}: run `cargo build -p waggle`, or set WAGGLE_BIN",
        path.display()
    );
    Ok(path)
}
