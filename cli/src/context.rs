//! Contexts: how client commands find a cluster that was started here. `waggle dev` writes one; a context names files
//! with keys, and never holds a key.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use waggle_config::identity::{self, Access};

/// The context that `waggle dev` writes and that commands use when nothing else is said.
pub(crate) const DEV: &str = "dev";

/// Loopback answers at once or not at all.
const CONNECT_TIME_MAX: std::time::Duration = std::time::Duration::from_millis(300);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Context {
    pub(crate) mcp_url: String,
    pub(crate) admin_url: String,
    pub(crate) tenant: String,
    pub(crate) key_file: PathBuf,
    /// Key of an operator, for tenants and keys of others.
    pub(crate) operator_key_file: PathBuf,
    pub(crate) data_dir: PathBuf,
}

impl Context {
    pub(crate) fn load(name: &str) -> Result<Option<Self>> {
        let Some(path) = path_of(name) else { return Ok(None) };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("read {}", path.display())),
        };
        serde_json::from_str(&text)
            .map(Some)
            .with_context(|| format!("read {}; remove it, `waggle dev` writes it anew", path.display()))
    }

    /// Saves the context of a server that starts, and gives the name it got. The first one keeps the name that commands
    /// use by themselves, as long as it runs; another one at the same time gets the port as part of its name.
    pub(crate) fn save_for(&self, port: u16) -> Result<String> {
        let other = Self::load(DEV)
            .ok()
            .flatten()
            .filter(|known| known.data_dir != self.data_dir && known.answers());
        let name = if other.is_some() {
            format!("{DEV}-{port}")
        } else {
            DEV.to_owned()
        };
        self.save(&name)?;
        Ok(name)
    }

    /// Whether something listens at its address.
    fn answers(&self) -> bool {
        let host = self.mcp_url.split("://").nth(1).and_then(|rest| rest.split('/').next());
        let address = host.and_then(|host| host.parse::<std::net::SocketAddr>().ok());
        address.is_some_and(|address| std::net::TcpStream::connect_timeout(&address, CONNECT_TIME_MAX).is_ok())
    }

    fn save(&self, name: &str) -> Result<()> {
        let path = path_of(name).context("find a home directory for the context; set WAGGLE_CONFIG_HOME")?;
        let text = serde_json::to_string_pretty(self).context("write the context as JSON")?;
        identity::write(&path, format!("{text}\n").as_bytes(), Access::Owner)?;
        Ok(())
    }
}

/// `$WAGGLE_CONFIG_HOME`, else `$XDG_CONFIG_HOME/waggle`, else `~/.config/waggle`.
fn config_home() -> Option<PathBuf> {
    let of = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    of("WAGGLE_CONFIG_HOME")
        .or_else(|| of("XDG_CONFIG_HOME").map(|dir| dir.join("waggle")))
        .or_else(|| of("HOME").map(|dir| dir.join(".config/waggle")))
}

/// The contexts that exist here, by name.
pub(crate) fn names() -> Vec<String> {
    let dir = config_home().map(|home| home.join("contexts"));
    let mut names: Vec<String> = dir
        .and_then(|dir| std::fs::read_dir(dir).ok())
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".json")?.to_owned()))
        .collect();
    names.sort_unstable();
    names
}

/// A name is a file name: nothing that leads elsewhere.
fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=64).contains(&name.len()) && name.bytes().all(plain)
}

fn path_of(name: &str) -> Option<PathBuf> {
    if !is_name(name) {
        return None;
    }
    config_home().map(|home| home.join("contexts").join(format!("{name}.json")))
}

/// `$XDG_DATA_HOME/waggle`, else `~/.local/share/waggle`, else a directory of the working directory.
pub(crate) fn default_data_dir() -> PathBuf {
    let of = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    of("XDG_DATA_HOME")
        .or_else(|| of("HOME").map(|home| home.join(".local/share")))
        .map_or_else(|| Path::new("waggle-data").to_owned(), |dir| dir.join("waggle"))
}
