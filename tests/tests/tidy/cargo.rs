//! What cargo knows about our packages and those that we use.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use waggle_tests::workspace::root;

/// Offline first: what is compiled is here. Packages of another platform may have to be fetched.
pub(crate) fn metadata(options: &[&str]) -> Result<Value> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut said = String::new();
    for network in [&["--offline"][..], &[]] {
        let output = Command::new(&cargo)
            .args(["metadata", "--format-version", "1", "--locked"])
            .args(options)
            .args(network)
            .current_dir(root())
            .output()
            .context("run cargo metadata")?;
        if output.status.success() {
            return serde_json::from_slice(&output.stdout).context("read the output of cargo metadata");
        }
        said = String::from_utf8_lossy(&output.stderr).into_owned();
    }
    bail!("cargo metadata {}: {said}", options.join(" "))
}

pub(crate) fn packages(metadata: &Value) -> Result<&[Value]> {
    Ok(metadata["packages"]
        .as_array()
        .context("find the packages in cargo's metadata")?)
}

pub(crate) fn our_packages(metadata: &Value) -> Result<BTreeMap<String, Value>> {
    let members = metadata["workspace_members"]
        .as_array()
        .context("find the members in cargo's metadata")?;
    let ours = packages(metadata)?
        .iter()
        .filter(|package| members.contains(&package["id"]));
    Ok(ours
        .map(|package| (package["name"].as_str().unwrap_or_default().to_owned(), package.clone()))
        .collect())
}

pub(crate) fn dependencies(package: &Value) -> BTreeSet<String> {
    let list = package["dependencies"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    list.iter()
        .filter_map(|dependency| dependency["name"].as_str())
        .map(str::to_owned)
        .collect()
}

pub(crate) fn only_for_tests(package: &Value, name: &str) -> bool {
    let list = package["dependencies"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    list.iter()
        .filter(|dependency| dependency["name"] == name)
        .all(|dependency| dependency["kind"] == "dev")
}

/// What would really be compiled: optional packages that nobody turns on are in the lock file only.
pub(crate) fn resolved_names(metadata: &Value) -> Result<BTreeSet<String>> {
    let names: BTreeMap<&str, &str> = packages(metadata)?
        .iter()
        .filter_map(|package| Some((package["id"].as_str()?, package["name"].as_str()?)))
        .collect();
    let nodes = metadata["resolve"]["nodes"]
        .as_array()
        .context("find the resolved packages")?;
    Ok(nodes
        .iter()
        .filter_map(|node| names.get(node["id"].as_str()?))
        .map(|name| (*name).to_owned())
        .collect())
}
