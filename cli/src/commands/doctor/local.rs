//! What can be seen without a call.

use anyhow::Result;
use waggle_config::identity::{self, DataDir};

use super::{Check, Status};
use crate::client::ClientArgs;
use crate::commands::connect;
use crate::connect::plan::State;

/// Less than this of the disk is a warning, and less than a third of it a failure.
const FREE_PERCENT_MIN: u64 = 15;

pub(super) fn context(client: &ClientArgs) -> Vec<Check> {
    match client.known() {
        Err(error) => vec![Check::fail(
            "context",
            &error,
            "start a server, or give --url and --key-file",
        )],
        Ok(known) => {
            let key = match (&known.key, &known.key_file) {
                (_, Some(file)) => format!("key from {}", file.display()),
                (Some(_), None) => "key from WAGGLE_KEY".to_owned(),
                (None, None) => {
                    let error = anyhow::anyhow!("no API key is known here");
                    return vec![Check::fail("context", &error, "give --key-file, or set WAGGLE_KEY")];
                }
            };
            vec![Check::ok("context", format!("{}, {key}", known.base))]
        }
    }
}

/// The data of a server of this machine, if the context knows one.
pub(super) fn data_dir(client: &ClientArgs) -> Vec<Check> {
    let Ok(Some(context)) = client.context() else {
        return Vec::new();
    };
    if !context.data_dir.is_dir() {
        return Vec::new();
    }
    let dir = DataDir::new(&context.data_dir);
    let private = [dir.pepper(), dir.cluster_secret(), dir.operator_key(), dir.dev_key()]
        .iter()
        .filter(|path| path.exists())
        .try_for_each(|path| identity::read_secret(path).map(drop));
    let mut checks = vec![match private {
        Ok(()) => Check::ok("data_dir", format!("{}: secrets are private", dir.root().display())),
        Err(error) => Check::fail("data_dir", &error.into(), "chmod 600 the file"),
    }];
    checks.extend(free(&dir).unwrap_or_else(|error| Some(Check::fail("disk", &error, "is the disk mounted?"))));
    checks
}

#[cfg(unix)]
fn free(dir: &DataDir) -> Result<Option<Check>> {
    let disk = rustix::fs::statvfs(dir.root())?;
    let percent = disk
        .f_bavail
        .saturating_mul(100)
        .checked_div(disk.f_blocks)
        .unwrap_or(100);
    let gib = disk.f_bavail.saturating_mul(disk.f_frsize) / (1024 * 1024 * 1024);
    let detail = format!("{gib} GiB free, {percent} %");
    let next = "free space: before the disk is full the server becomes read-only";
    Ok(Some(match percent {
        FREE_PERCENT_MIN.. => Check::ok("disk", detail),
        few => Check {
            status: if few < FREE_PERCENT_MIN / 3 {
                Status::Fail
            } else {
                Status::Warn
            },
            ..Check::warn("disk", detail, next)
        },
    }))
}

#[cfg(not(unix))]
fn free(_dir: &DataDir) -> Result<Option<Check>> {
    Ok(None)
}

/// One check for each client that is installed.
pub(super) fn clients(client: &ClientArgs) -> Vec<Check> {
    let lines = match connect::check_all(client) {
        Ok(lines) => lines,
        Err(error) => return vec![Check::fail("clients", &error, "set HOME")],
    };
    if lines.is_empty() {
        return vec![Check::ok("clients", "no client that we know is installed here")];
    }
    lines
        .into_iter()
        .map(|line| {
            let what = format!(
                "{}: {}",
                line.client.name,
                line.problem.as_deref().unwrap_or(line.state.word())
            );
            let next = || format!("`waggle connect {}`", line.client.id);
            match line.state {
                State::Connected | State::ByHand => Check::ok("clients", what),
                State::Unreadable => Check {
                    status: Status::Fail,
                    ..Check::warn("clients", what, "correct the file")
                },
                _ => Check::warn("clients", what, next()),
            }
        })
        .collect()
}
