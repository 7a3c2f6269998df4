//! Runs the built binary.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The binary, with a home of its own and none of the developer's settings.
pub(crate) fn waggle(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_waggle"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("WAGGLE") {
            command.env_remove(name);
        }
    }
    command
        .env("HOME", home)
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("XDG_DATA_HOME")
        .stdin(Stdio::null());
    command
}

pub(crate) fn run(home: &Path, arguments: &[&str]) -> Output {
    waggle(home).args(arguments).output().expect("start the binary")
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
