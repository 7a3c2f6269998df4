//! `waggle cert`: the cluster's own certificate authority, in a directory.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Value, json};
use waggle_config::certificates::{self, Described, Life, Role, Subject};
use waggle_config::runtime::clock::{Clock as _, System};
use waggle_memory::time::Millis;

use crate::output::{OutputArgs, table};

mod renew;

#[derive(clap::Subcommand)]
pub(crate) enum Verb {
    /// Make the authority: ca.pem and ca.key. Keep ca.key away from servers.
    CreateCa(CreateCa),
    /// Make a node's certificate. It grants full authority over the cluster's data: guard its key.
    CreateNode(Create),
    /// Make a gateway's certificate.
    CreateGateway(Create),
    /// List the certificates of a directory, when they end, and which have to be renewed.
    List(List),
    /// Replace key and certificate by new ones for the same process. Running processes take them without a restart.
    Renew(renew::Args),
}

#[derive(clap::Args)]
pub(crate) struct CreateCa {
    /// Directory of the certificates.
    #[arg(long, value_name = "DIR", default_value = "certificates")]
    dir: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(clap::Args)]
pub(crate) struct Create {
    /// Directory of the certificates, with the authority in it.
    #[arg(long, value_name = "DIR", default_value = "certificates")]
    dir: PathBuf,
    /// Number of the node or gateway.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    id: u64,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(clap::Args)]
pub(crate) struct List {
    /// Directory of the certificates.
    #[arg(long, value_name = "DIR", default_value = "certificates")]
    dir: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(verb: Verb) -> Result<()> {
    match verb {
        Verb::CreateCa(args) => {
            let path = certificates::create_ca(&args.dir, System::new().wall())?;
            eprintln!("made {} and its key", path.display());
            args.output.show(&json!({"certificate": path}), String::new)
        }
        Verb::CreateNode(args) => create(&args, Role::Node),
        Verb::CreateGateway(args) => create(&args, Role::Gateway),
        Verb::List(args) => {
            let now = System::new().wall();
            let found = certificates::list(&args.dir)?;
            let data: Vec<_> = found.iter().map(|one| describe(one, now)).collect();
            args.output.show(&json!({ "certificates": data }), || {
                let rows: Vec<_> = found.iter().map(|one| row(one, now)).collect();
                table(&["FOR", "STATUS", "EXPIRES", "FILE"], &rows)
            })
        }
        Verb::Renew(args) => renew::run(&args),
    }
}

fn describe(one: &Described, now: Millis) -> Value {
    json!({
        "path": one.path,
        "role": one.subject.map_or("authority", |subject| subject.role.word()),
        "id": one.subject.map(|subject| subject.id),
        "status": one.life(now).word(),
        "expires_at": one.expires_at.to_string(),
    })
}

fn create(args: &Create, role: Role) -> Result<()> {
    let files = certificates::create(&args.dir, Subject { role, id: args.id }, System::new().wall())?;
    eprintln!("made {} and {}", files.certificate.display(), files.key.display());
    let data = json!({"certificate": files.certificate, "key": files.key, "role": role.word(), "id": args.id});
    args.output.show(&data, String::new)
}

fn row(one: &Described, now: Millis) -> Vec<String> {
    let name = one
        .subject
        .map_or_else(|| "authority".to_owned(), |subject| subject.to_string());
    let status = match one.life(now) {
        Life::Good => "ok".to_owned(),
        Life::Ending => format!(
            "expires in {} days",
            one.expires_at.0.saturating_sub(now.0) / Millis::DAY
        ),
        Life::Ended => "EXPIRED".to_owned(),
    };
    vec![name, status, one.expires_at.to_string(), one.path.display().to_string()]
}
