//! Packs a sentence model from a local directory: `waggle-model-pack DIRECTORY NAME OUTPUT`.
//!
//! A developer ran it once for the file in `model/`; it is never part of a build or a start.

use std::path::Path;
use std::process::ExitCode;

use waggle_recall::encoder::pack::{PackOptions, pack_directory};
use waggle_recall::encoder::{Encoder, KernelChoice};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, name, output] = arguments.as_slice() else {
        eprintln!("usage: waggle-model-pack DIRECTORY NAME OUTPUT");
        return ExitCode::from(64);
    };
    match pack(Path::new(directory), name, Path::new(output)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("waggle-model-pack: {error}");
            let mut source = error.source();
            while let Some(cause) = source {
                eprintln!("  because: {cause}");
                source = cause.source();
            }
            ExitCode::FAILURE
        }
    }
}

fn pack(directory: &Path, name: &str, output: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let options = PackOptions {
        name: name.to_owned(),
        ..PackOptions::default()
    };
    let packed = pack_directory(directory, &options)?;
    for (file, sha256) in &packed.sources {
        eprintln!("{sha256}  {file}");
    }
    if !packed.known {
        eprintln!("no known model is called {name}: compare the hashes with those of its authors");
    }
    std::fs::write(output, &packed.bytes)?;
    // Read back as a node would: a file that cannot be loaded is no result.
    let encoder = Encoder::from_packed(packed.bytes.into(), KernelChoice::Detect)?;
    eprintln!("{}  {}", encoder.model_id(), output.display());
    Ok(())
}
