//! A short run against the real binary, so that neither the harness nor what it finds at once goes unnoticed.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use waggle_chaos::nemesis::Kind;
use waggle_chaos::run::{Options, run};

/// `WAGGLE_BIN`, or the one that cargo put beside the running test.
fn binary() -> Result<PathBuf> {
    let path = match env::var_os("WAGGLE_BIN") {
        Some(path) => PathBuf::from(path),
        None => {
            let test = env::current_exe().context("find the path of the running test")?;
            let folder = test.ancestors().find(|folder| folder.join("waggle").is_file());
            folder
                .context("there is no waggle binary: run `cargo build -p waggle`, or set WAGGLE_BIN")?
                .join("waggle")
        }
    };
    Ok(path)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_under_a_few_faults_breaks_no_promise() -> Result<()> {
    let seed = env::var("WAGGLE_SEED")
        .ok()
        .map_or(Ok(1), |text| text.parse())
        .context("WAGGLE_SEED")?;
    let folder = tempfile::tempdir()?;
    let options = Options {
        seed,
        time: Duration::from_secs(10),
        // What needs neither root nor much time.
        kinds: vec![
            Kind::KillLeader,
            Kind::PauseLeader,
            Kind::IsolateLeader,
            Kind::DeafLeader,
            Kind::Resets,
        ],
        ..Options::new(&binary()?, folder.path())
    };
    let report = run(&options).await;
    let passed = report.as_ref().is_ok_and(|report| report.exit_code() == 0);
    if !passed {
        // A violation that cannot be looked at cannot be understood.
        eprintln!("seed {seed}; everything is kept in {}", folder.keep().display());
    }
    let report = report?;
    eprintln!("{}", report.table());
    ensure!(passed, "{}", report.verdict);
    Ok(())
}
