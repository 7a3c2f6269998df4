//! What an export is, as data, and its sealed form: the link to it. Nothing is kept; whoever has the link and a
//! credential of the tenant has the export made again.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;
use waggle_config::limits::EXPORT_LINK_AGE_MAX;
use waggle_memory::time::Millis;
use waggle_proto::wire::Scope;

use crate::auth::Caller;
use crate::fault::Fault;
use crate::seal::keyed_hash;

const TAG_BYTES: usize = 16;
/// Scope and name, 1 KiB at most, in base 64.
const LINK_BYTES_MAX: usize = 4096;
/// Longest offered file name in bytes.
const NAME_BYTES_MAX: usize = 120;

/// What file is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Format {
    Json,
    Abhi,
    Graphml,
    Html,
    Bundle,
    Vault,
}

impl Format {
    pub(crate) const BACKUPS: [&'static str; 3] = ["json", "abhi", "graphml"];

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "json" => Self::Json,
            "abhi" => Self::Abhi,
            "graphml" => Self::Graphml,
            "html" => Self::Html,
            "bundle" => Self::Bundle,
            "vault" => Self::Vault,
            _ => return None,
        })
    }

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Abhi => "abhi",
            Self::Graphml => "graphml",
            Self::Html => "html",
            Self::Bundle => "bundle",
            Self::Vault => "vault",
        }
    }

    pub(crate) const fn mime_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Abhi => "application/vnd.waggle.abhi",
            Self::Graphml => "application/graphml+xml",
            Self::Html => "text/html; charset=utf-8",
            Self::Bundle => "text/markdown; charset=utf-8",
            Self::Vault => "application/zip",
        }
    }

    const fn extension(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Abhi => "abhi",
            Self::Graphml => "graphml",
            Self::Html => "html",
            Self::Bundle => "md",
            Self::Vault => "zip",
        }
    }

    /// Whether it has a form that an answer can carry as text.
    pub(crate) const fn is_text(self) -> bool {
        !matches!(self, Self::Abhi)
    }
}

/// What happens to what looks like a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SecretsPolicy {
    Refuse,
    Redact,
    Include,
}

impl SecretsPolicy {
    pub(crate) const WORDS: [&'static str; 3] = ["refuse", "redact", "include"];

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "refuse" => Self::Refuse,
            "redact" => Self::Redact,
            "include" => Self::Include,
            _ => return None,
        })
    }
}

/// An export, so that it can be made again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Description {
    pub(crate) format: Format,
    pub(crate) project: String,
    pub(crate) agent_id: String,
    pub(crate) session_id: String,
    pub(crate) secrets: SecretsPolicy,
    pub(crate) weak_links: bool,
    pub(crate) physics: bool,
    /// Written into the file, so that the same state gives the same bytes again.
    pub(crate) exported_at: i64,
    /// Offered as the file's name.
    pub(crate) name: String,
}

impl Description {
    pub(crate) fn scope(&self) -> Scope {
        Scope {
            project: self.project.clone(),
            agent_id: self.agent_id.clone(),
            session_id: self.session_id.clone(),
        }
    }

    /// Whether a secret in the last record would be met after the first bytes were written.
    pub(crate) fn may_be_refused_late(&self) -> bool {
        self.secrets == SecretsPolicy::Refuse && matches!(self.format, Format::Json | Format::Graphml)
    }

    /// The name under which a browser or client saves it.
    pub(crate) fn file_name(&self) -> String {
        if self.name.is_empty() {
            format!("waggle-export.{}", self.format.extension())
        } else {
            self.name.clone()
        }
    }
}

/// The last component of a path that somebody gave, if it can be a file name: nothing is written under it here.
pub(crate) fn offered_name(path: &str) -> String {
    let last = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain: String = last
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ' '))
        .collect();
    let trimmed = plain.trim_matches(['.', ' ']);
    let mut end = trimmed.len().min(NAME_BYTES_MAX);
    while !trimmed.is_char_boundary(end) {
        end -= 1;
    }
    trimmed.get(..end).unwrap_or_default().to_owned()
}

#[derive(Serialize, Deserialize)]
struct Sealed {
    issued: i64,
    export: Description,
}

/// Seals and opens links.
pub(crate) struct Links {
    key: [u8; 32],
}

impl Links {
    pub(crate) fn new(cluster_secret: &[u8]) -> Self {
        Self {
            key: keyed_hash(cluster_secret, &[b"waggle export link v1"]),
        }
    }

    pub(crate) fn seal(&self, export: &Description, caller: &Caller, now: Millis) -> String {
        let sealed = Sealed {
            issued: now.0,
            export: export.clone(),
        };
        let mut bytes = serde_json::to_vec(&sealed).unwrap_or_default();
        let tag = self.tag(&bytes, caller);
        bytes.extend(tag);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    pub(crate) fn open(&self, text: &str, caller: &Caller, now: Millis) -> Result<Description, Fault> {
        // Of another tenant or author, made up, or too old: all the same to who asks.
        let refused = || {
            Fault::new(
                "not_found",
                "there is no such export; links live 15 minutes and belong to the key that asked: export again",
            )
        };
        if text.len() > LINK_BYTES_MAX {
            return Err(refused());
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| refused())?;
        let at = bytes.len().checked_sub(TAG_BYTES).ok_or_else(refused)?;
        let (body, tag) = bytes.split_at(at);
        if !bool::from(self.tag(body, caller).ct_eq(tag)) {
            return Err(refused());
        }
        let sealed: Sealed = serde_json::from_slice(body).map_err(|_| refused())?;
        let age = u128::try_from(now.0.saturating_sub(sealed.issued)).unwrap_or(0);
        if age > EXPORT_LINK_AGE_MAX.as_millis() {
            return Err(refused());
        }
        Ok(sealed.export)
    }

    fn tag(&self, body: &[u8], caller: &Caller) -> [u8; TAG_BYTES] {
        let parts = [body, caller.tenant.as_str().as_bytes(), caller.principal.as_bytes()];
        let hash = keyed_hash(&self.key, &parts);
        let mut tag = [0; TAG_BYTES];
        tag.iter_mut().zip(hash).for_each(|(to, from)| *to = from);
        tag
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use waggle_memory::meta::KeyScopes;

    const NOW: Millis = Millis(1_700_000_000_000);

    fn caller(tenant: &str, key: &str) -> Caller {
        Caller {
            tenant: tenant.parse().expect("a tenant"),
            key_id: key.to_owned(),
            principal: format!("key:{key}"),
            scopes: KeyScopes::ALL,
            unlimited: false,
        }
    }

    fn description() -> Description {
        Description {
            format: Format::Json,
            project: "pay".to_owned(),
            agent_id: String::new(),
            session_id: String::new(),
            secrets: SecretsPolicy::Refuse,
            weak_links: false,
            physics: true,
            exported_at: 5,
            name: String::new(),
        }
    }

    #[test]
    fn a_link_opens_for_its_tenant_and_author_untouched_and_in_time() {
        let links = Links::new(&[1; 32]);
        let (ours, export) = (caller("acme", "k1"), description());
        let link = links.seal(&export, &ours, NOW);
        assert_eq!(links.open(&link, &ours, NOW), Ok(export));
        assert!(links.open(&link, &caller("other", "k1"), NOW).is_err());
        assert!(links.open(&link, &caller("acme", "k2"), NOW).is_err());
        assert!(links.open(&link, &ours, NOW.plus(15 * 60_000)).is_ok());
        assert!(links.open(&link, &ours, NOW.plus(15 * 60_000 + 1)).is_err());
        assert!(Links::new(&[2; 32]).open(&link, &ours, NOW).is_err());
        for text in ["", "x", "!!", &link[1..], &"A".repeat(5_000)] {
            assert_eq!(
                links.open(text, &ours, NOW).map_err(|fault| fault.code),
                Err("not_found")
            );
        }
    }

    #[test]
    fn only_the_last_part_of_a_path_is_a_name() {
        for (path, name) in [
            ("/etc/passwd", "passwd"),
            ("..\\..\\a.json", "a.json"),
            ("../..", ""),
            ("x/\"; rm\r\n.json", " rm.json".trim()),
            ("", ""),
        ] {
            assert_eq!(offered_name(path), name, "{path}");
        }
        assert!(offered_name(&"ü".repeat(500)).len() <= NAME_BYTES_MAX);
    }
}
