//! Generates the message types of both packages: `wire` (between processes, with services) and `log` (persisted).

use std::io;
use std::path::PathBuf;

fn main() -> io::Result<()> {
    for (folder, services) in [("wire", true), ("log", false)] {
        let mut files: Vec<PathBuf> = std::fs::read_dir(folder)?
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "proto"))
            .collect();
        files.sort();
        println!("cargo:rerun-if-changed={folder}");
        if files.is_empty() {
            continue;
        }
        tonic_prost_build::configure()
            .build_client(services)
            .build_server(services)
            .emit_rerun_if_changed(false)
            .compile_protos(&files, &[PathBuf::from(".")])?;
    }
    Ok(())
}
