//! `waggle cert renew`: where the authority's key is, not on the servers.

use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use serde_json::json;
use waggle_config::certificates::{self, Described, Role, Subject};
use waggle_config::runtime::clock::{Clock as _, System};
use waggle_memory::time::Millis;

use crate::failure::{self, Failure};
use crate::output::OutputArgs;

#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("which").required(true).args(["role", "all"])))]
pub(crate) struct Args {
    /// Directory of the certificates, with the authority and its key in it.
    #[arg(long, value_name = "DIR", default_value = "certificates")]
    dir: PathBuf,
    /// What the process is.
    #[arg(long, value_enum)]
    role: Option<RoleArg>,
    /// Number of the node or gateway.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, requires = "role", value_parser = clap::value_parser!(u64).range(1..))]
    id: u64,
    /// Every node and gateway of the directory.
    #[arg(long, conflicts_with = "role")]
    all: bool,
    /// Only what ends within this time, such as 30d or 12h; everything that was named when left out.
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    within: Option<i64>,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RoleArg {
    Node,
    Gateway,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let now = System::new().wall();
    let (due, left): (Vec<_>, Vec<_>) = chosen(args)?
        .into_iter()
        .partition(|(_, one)| args.within.is_none_or(|within| one.expires_at < now.plus(within)));
    let mut renewed = Vec::new();
    for (subject, _) in &due {
        let files = certificates::renew(&args.dir, *subject, now)?;
        eprintln!("renewed {} and {}", files.certificate.display(), files.key.display());
        renewed.push(json!({
            "role": subject.role.word(), "id": subject.id, "certificate": files.certificate, "key": files.key,
        }));
    }
    if due.is_empty() {
        eprintln!("nothing to renew");
    } else {
        eprintln!("copy each pair to its machine, if that is another one; the process there takes it by itself");
    }
    let kept: Vec<_> = left.iter().map(|(_, one)| super::describe(one, now)).collect();
    args.output
        .show(&json!({ "renewed": renewed, "kept": kept }), String::new)
}

fn chosen(args: &Args) -> Result<Vec<(Subject, Described)>> {
    let wanted = args.role.map(|role| Subject {
        role: match role {
            RoleArg::Node => Role::Node,
            RoleArg::Gateway => Role::Gateway,
        },
        id: args.id,
    });
    let found: Vec<_> = certificates::list(&args.dir)?
        .into_iter()
        .filter_map(|one| one.subject.map(|subject| (subject, one)))
        .filter(|(subject, one)| {
            // What was copied under another name is not renewed under it.
            certificates::files(&args.dir, *subject).certificate == one.path
                && wanted.is_none_or(|wanted| wanted == *subject)
        })
        .collect();
    if let (Some(wanted), true) = (wanted, found.is_empty()) {
        let what = format!("{} holds no certificate for {wanted}", args.dir.display());
        let next = format!("make one with `waggle cert create-{}`", wanted.role.word());
        return Err(Failure::new(failure::NOT_FOUND, what).next(next).into());
    }
    Ok(found)
}

/// Milliseconds.
fn parse_span(text: &str) -> Result<i64, String> {
    let unit = match text.chars().last() {
        Some('d') => Millis::DAY,
        Some('h') => Millis::DAY / 24,
        _ => return Err("a number of days or hours, such as 30d or 12h".to_owned()),
    };
    let count: u32 = text
        .get(..text.len() - 1)
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| format!("'{text}' is no number of days or hours, such as 30d or 12h"))?;
    Ok(i64::from(count).saturating_mul(unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_a_unit() {
        assert_eq!(parse_span("30d"), Ok(30 * Millis::DAY));
        assert_eq!(parse_span("12h"), Ok(12 * 3_600_000));
        for wrong in ["", "30", "d", "-1d", "30 d", "3ü"] {
            assert!(parse_span(wrong).is_err(), "{wrong:?}");
        }
    }
}
