//! Where programs keep their configuration, by platform and environment.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

/// Which rules for directories hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Platform {
    Linux,
    MacOs,
    Windows,
}

impl Platform {
    pub(crate) fn here() -> Self {
        match env::consts::OS {
            "macos" => Self::MacOs,
            "windows" => Self::Windows,
            _ => Self::Linux,
        }
    }
}

/// The variables that move a configuration. Others are not looked at.
const VARIABLES: [&str; 9] = [
    "HOME",
    "USERPROFILE",
    "XDG_CONFIG_HOME",
    "APPDATA",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "PI_CODING_AGENT_DIR",
    "GEMINI_CLI_HOME",
    "OPENCODE_CONFIG_DIR",
];

/// The directories of one user.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    home: PathBuf,
    platform: Platform,
    variables: BTreeMap<&'static str, PathBuf>,
}

impl Places {
    /// From the environment of this process; None without a home directory.
    pub(crate) fn here() -> Option<Self> {
        Self::new(Platform::here(), |name| env::var_os(name).map(PathBuf::from))
    }

    pub(crate) fn new(platform: Platform, lookup: impl Fn(&str) -> Option<PathBuf>) -> Option<Self> {
        let variables: BTreeMap<_, _> = VARIABLES
            .iter()
            .filter_map(|name| Some((*name, lookup(name)?)))
            .filter(|(_, path)| !path.as_os_str().is_empty())
            .collect();
        let home = match platform {
            Platform::Windows => variables.get("USERPROFILE").or(variables.get("HOME")),
            _ => variables.get("HOME"),
        };
        Some(Self {
            home: home?.clone(),
            platform,
            variables,
        })
    }

    pub(crate) fn home(&self, below: &str) -> PathBuf {
        self.home.join(below)
    }

    /// The directory that a variable names.
    pub(crate) fn variable(&self, name: &str) -> Option<PathBuf> {
        self.variables.get(name).cloned()
    }

    /// What a variable says, else a place below the home directory.
    pub(crate) fn or_home(&self, variable: &str, below: &str) -> PathBuf {
        self.variable(variable).unwrap_or_else(|| self.home(below))
    }

    /// `$XDG_CONFIG_HOME`, else `~/.config`, on every platform: what many command-line programs do.
    pub(crate) fn config(&self, below: &str) -> PathBuf {
        self.or_home("XDG_CONFIG_HOME", ".config").join(below)
    }

    /// The directory of a desktop program.
    pub(crate) fn application(&self, name: &str) -> PathBuf {
        match self.platform {
            Platform::Linux => self.config(name),
            Platform::MacOs => self.home("Library/Application Support").join(name),
            Platform::Windows => self.or_home("APPDATA", "AppData/Roaming").join(name),
        }
    }

    pub(crate) fn platform(&self) -> Platform {
        self.platform
    }

    /// A path as people write it.
    pub(crate) fn short(&self, path: &Path) -> String {
        match path.strip_prefix(&self.home) {
            Ok(below) => format!("~/{}", below.display()),
            Err(_) => path.display().to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn check(platform: Platform, set: &[(&str, &str)], code: &str, config: &str) {
        let places = Places::new(platform, |name| {
            set.iter()
                .find(|(known, _)| *known == name)
                .map(|(_, path)| PathBuf::from(path))
        })
        .expect("a home");
        assert_eq!(places.application("Code"), PathBuf::from(code));
        assert_eq!(places.config("x"), PathBuf::from(config));
    }

    #[test]
    fn each_platform_has_its_directories() {
        check(Platform::Linux, &[("HOME", "/h")], "/h/.config/Code", "/h/.config/x");
        check(
            Platform::Linux,
            &[("HOME", "/h"), ("XDG_CONFIG_HOME", "/c")],
            "/c/Code",
            "/c/x",
        );
        check(
            Platform::MacOs,
            &[("HOME", "/h")],
            "/h/Library/Application Support/Code",
            "/h/.config/x",
        );
        check(
            Platform::Windows,
            &[("USERPROFILE", "/u"), ("HOME", "/h"), ("APPDATA", "/a")],
            "/a/Code",
            "/u/.config/x",
        );
        assert!(Places::new(Platform::Linux, |_| None).is_none());
    }
}
