//! `waggle doctor`: from this machine to the gateway, one check after the other. A check that cannot be made because an
//! earlier one failed is left out.

mod local;
mod remote;

use anyhow::Result;
use serde_json::{Value, json};

use crate::client::ClientArgs;
use crate::failure::{self, Failure};
use crate::output::{OutputArgs, table};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Also store, find and delete a memory, in the project waggle-doctor.
    #[arg(long)]
    write: bool,
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Ok,
    Warn,
    Fail,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Check {
    id: &'static str,
    status: Status,
    detail: String,
    next: Option<String>,
}

impl Check {
    fn ok(id: &'static str, detail: impl Into<String>) -> Self {
        Self {
            id,
            status: Status::Ok,
            detail: detail.into(),
            next: None,
        }
    }

    fn warn(id: &'static str, detail: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            status: Status::Warn,
            next: Some(next.into()),
            ..Self::ok(id, detail)
        }
    }

    fn fail(id: &'static str, error: &anyhow::Error, next: &str) -> Self {
        let failure = Failure::from_error(error);
        Self {
            status: Status::Fail,
            next: Some(failure.next.unwrap_or_else(|| next.to_owned())),
            ..Self::ok(id, failure.what)
        }
    }

    fn json(&self) -> Value {
        json!({"id": self.id, "status": self.status.word(), "detail": self.detail, "next": self.next})
    }
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

pub(crate) fn run(args: Args) -> Result<()> {
    let mut checks = local::context(&args.client);
    if checks.iter().all(|check| check.status != Status::Fail) {
        checks.extend(remote::checks(&args.client, args.write));
        checks.extend(local::data_dir(&args.client));
        checks.extend(local::clients(&args.client));
    }
    let count = |status| checks.iter().filter(|check| check.status == status).count();
    let (warned, failed) = (count(Status::Warn), count(Status::Fail));
    let status = match (failed, warned) {
        (0, 0) => Status::Ok,
        (0, _) => Status::Warn,
        _ => Status::Fail,
    };
    let data = json!({
        "status": status.word(),
        "version": env!("CARGO_PKG_VERSION"),
        "checks": checks.iter().map(Check::json).collect::<Vec<_>>(),
    });
    args.output.show(&data, || screen(&checks))?;
    if failed > 0 {
        let what = format!("{failed} of {} checks failed", checks.len());
        return Err(Failure::new(failure::CHECK_FAILED, what)
            .next("see docs/doctor.md for each check")
            .into());
    }
    Ok(())
}

fn screen(checks: &[Check]) -> String {
    let rows: Vec<_> = checks
        .iter()
        .map(|check| {
            vec![
                check.status.word().to_owned(),
                check.id.to_owned(),
                check.detail.clone(),
            ]
        })
        .collect();
    let mut text = table(&["STATUS", "CHECK", "DETAIL"], &rows);
    for check in checks {
        if let Some(next) = &check.next {
            text.push_str(&format!("{}: next: {next}\n", check.id));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_and_what_next() {
        let error = anyhow::Error::from(Failure::new(failure::UNAVAILABLE, "no route").next("look at the cable"));
        let check = Check::fail("reachable", &error, "another");
        assert_eq!(
            check.json(),
            json!({"id": "reachable", "status": "fail", "detail": "no route", "next": "look at the cable"})
        );
        assert_eq!(
            screen(&[Check::ok("context", "found"), check]),
            "STATUS  CHECK      DETAIL\nok      context    found\nfail    reachable  no route\n\
             reachable: next: look at the cable\n"
        );
    }
}
