//! Secrets in a text: key shapes and passwords. A clause that holds one makes no memory; exports refuse or replace them.
//!
//! One pass over the runs of characters between blanks; every check of a run is linear in it.

/// What a secret looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecretKind {
    /// A key of a provider, a cloud or this product.
    ApiKey,
    /// A JSON web token.
    Token,
    /// A private key block.
    PrivateKey,
    /// A value that a word before it calls a secret.
    Password,
    /// User and password in a URL.
    Credentials,
}

impl SecretKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::ApiKey,
        Self::Token,
        Self::PrivateKey,
        Self::Password,
        Self::Credentials,
    ];

    /// The word of reports, and of what stands in place of a redacted value.
    pub const fn word(self) -> &'static str {
        match self {
            Self::ApiKey => "api_key",
            Self::Token => "json_web_token",
            Self::PrivateKey => "private_key",
            Self::Password => "password",
            Self::Credentials => "credentials",
        }
    }

    /// What stands in place of a redacted value.
    pub fn mark(self) -> String {
        format!("[secret:{}]", self.word())
    }
}

/// Where a secret stands in a text, as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Secret {
    /// What it looks like.
    pub kind: SecretKind,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// Prefixes of provider keys, with the least number of characters after them.
const KEY_PREFIXES: &[(&str, usize)] = &[
    ("sk-", 16),
    ("sk_live_", 10),
    ("sk_test_", 10),
    ("pk_live_", 10),
    ("rk_live_", 10),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("github_pat_", 20),
    ("glpat-", 12),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("xoxa-", 10),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("hf_", 20),
    ("npm_", 20),
    ("dop_v1_", 20),
    ("SG.", 20),
    ("whsec_", 16),
    // Keys of this product: environment, id, secret, check.
    ("wg_", 48),
];

/// Words that name a secret when a value follows.
const SECRET_WORDS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "apikey",
    "api_key",
    "api-key",
    "key",
    "access_key",
    "secret_key",
    "client_secret",
    "auth_token",
];

/// The byte ranges of the secrets in `text`, in order.
pub(crate) fn secrets(text: &str) -> Vec<(usize, usize)> {
    find_secrets(text)
        .iter()
        .map(|secret| (secret.start, secret.end))
        .collect()
}

/// Whether `text` is what a redaction left: no secret, though it names one. Rules that read a mark may leave out its
/// brackets and cut it at `_`.
pub fn is_mark(text: &str) -> bool {
    let text = text.trim_matches(|c: char| !c.is_alphanumeric());
    text.strip_prefix("secret:").is_some_and(|kind| {
        let first = |word: &'static str| word.split('_').next();
        SecretKind::ALL
            .iter()
            .any(|known| kind == known.word() || first(known.word()) == Some(kind))
    })
}

/// Whether `value` is a secret because of the name that it has in an object. Much that is called a key or a token is
/// none, so these two need a value that looks like one.
pub fn is_named_secret(name: &str, value: &str) -> bool {
    let name = name.trim_matches(|c: char| !c.is_alphanumeric());
    if name.len() > 60 || value.len() < 4 || is_mark(value) {
        return false;
    }
    let name = name.to_lowercase();
    let ends_with = |word: &&&str| {
        name.strip_suffix(**word)
            .is_some_and(|before| before.is_empty() || before.ends_with(['_', '-']))
    };
    let longest = SECRET_WORDS.iter().filter(ends_with).max_by_key(|word| word.len());
    match longest {
        None => false,
        Some(&("key" | "token")) => is_mixed(value),
        Some(_) => true,
    }
}

fn is_mixed(value: &str) -> bool {
    value.len() >= 6
        && value.len() < 200
        && value.bytes().any(|b| b.is_ascii_digit())
        && value.bytes().any(|b| b.is_ascii_alphabetic())
}

/// The secrets in `text`, in order, none inside another.
pub fn find_secrets(text: &str) -> Vec<Secret> {
    let mut found: Vec<Secret> = Vec::new();
    let mut at = 0;
    let mut previous: [(&str, usize); 2] = [("", 0), ("", 0)];
    let mut private_key: Option<usize> = None;
    let mut at_end = false;
    for run in text.split(char::is_whitespace) {
        let (start, end) = (at, at + run.len());
        at = end + text.get(end..).and_then(|t| t.chars().next()).map_or(0, char::len_utf8);
        if run.is_empty() {
            continue;
        }
        if private_key.is_none() && run.contains("-----BEGIN") {
            private_key = Some(start);
        }
        if let Some(begin) = private_key {
            at_end |= run.contains("-----END");
            if at_end && run.contains("KEY-----") {
                found.push(Secret {
                    kind: SecretKind::PrivateKey,
                    start: begin,
                    end,
                });
                (private_key, at_end) = (None, false);
            }
            continue;
        }
        if let Some(kind) = kind_of(run, &previous) {
            found.push(Secret { kind, start, end });
        }
        previous = [previous[1], (run, start)];
    }
    // A key block that never ends hides all that follows.
    found.extend(
        private_key
            .filter(|begin| text.get(*begin..).is_some_and(|t| t.contains("PRIVATE KEY")))
            .map(|start| Secret {
                kind: SecretKind::PrivateKey,
                start,
                end: text.len(),
            }),
    );
    found
}

fn kind_of(run: &str, previous: &[(&str, usize); 2]) -> Option<SecretKind> {
    let bare = run.trim_matches(|c: char| !c.is_alphanumeric());
    if is_mark(run) {
        None
    } else if is_token(bare) {
        Some(SecretKind::Token)
    } else if is_key(bare) {
        Some(SecretKind::ApiKey)
    } else if has_credentials(run) {
        Some(SecretKind::Credentials)
    } else if names_value(run) || is_value_of(previous, bare) {
        Some(SecretKind::Password)
    } else {
        None
    }
}

fn is_plain(text: &str) -> bool {
    text.bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

fn is_key(run: &str) -> bool {
    KEY_PREFIXES.iter().any(|(prefix, least)| {
        run.strip_prefix(prefix)
            .is_some_and(|rest| rest.len() >= *least && is_plain(rest))
    })
}

/// Three parts, the first an encoded object.
fn is_token(run: &str) -> bool {
    run.starts_with("eyJ") && run.len() > 40 && run.matches('.').count() == 2 && is_plain(run)
}

/// `password=hunter2`, `api_key:abc123def`.
fn names_value(run: &str) -> bool {
    let Some(at) = run.find(['=', ':']) else { return false };
    let name = run
        .get(..at)
        .unwrap_or_default()
        .trim_matches(|c: char| !c.is_alphanumeric())
        .to_lowercase();
    let value = run
        .get(at + 1..)
        .unwrap_or_default()
        .trim_matches(['"', '\'', '`', ',', ';']);
    let named = name.len() <= 60
        && SECRET_WORDS
            .iter()
            .any(|w| name == *w || name.ends_with(&format!("_{w}")) || name.ends_with(&format!("-{w}")));
    named && value.len() >= 4 && !value.starts_with("//") && !value.starts_with('<') && !value.starts_with('$')
}

/// `postgres://user:password@host`.
fn has_credentials(run: &str) -> bool {
    let Some((_, rest)) = run.split_once("://") else {
        return false;
    };
    let authority = rest.split('/').next().unwrap_or_default();
    authority
        .rsplit_once('@')
        .is_some_and(|(user, _)| user.split_once(':').is_some_and(|(_, password)| !password.is_empty()))
}

/// The value after "password:", "api key:", "the password is".
fn is_value_of(previous: &[(&str, usize); 2], value: &str) -> bool {
    let [(before, _), (last, _)] = previous;
    let lower = last.to_lowercase();
    let marked = lower.strip_suffix([':', '=']).map(str::to_owned);
    let name = match marked {
        Some(name) => name,
        None if matches!(lower.as_str(), "is" | "=") => before.to_lowercase(),
        None => return false,
    };
    let name = name.trim_matches(|c: char| !c.is_alphanumeric());
    name.len() <= 60 && SECRET_WORDS.contains(&name) && is_mixed(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(&'static str, &str)> {
        find_secrets(text)
            .iter()
            .map(|secret| (secret.kind.word(), &text[secret.start..secret.end]))
            .collect()
    }

    #[test]
    fn secrets_are_found_with_their_kind() {
        let own = format!("wg_live_{}_{}_{}", "a".repeat(12), "B".repeat(43), "c".repeat(6));
        assert_eq!(
            kinds(&format!("the key {own}.")),
            [("api_key", format!("{own}.").as_str())]
        );
        assert_eq!(
            kinds("use AKIAABCDEFGHIJKLMNOP now"),
            [("api_key", "AKIAABCDEFGHIJKLMNOP")]
        );
        let token = format!("eyJ{}.{}.{}", "a".repeat(20), "b".repeat(20), "c".repeat(20));
        assert_eq!(kinds(&token), [("json_web_token", token.as_str())]);
        assert_eq!(
            kinds("db postgres://u:p@host/x"),
            [("credentials", "postgres://u:p@host/x")]
        );
        assert_eq!(
            kinds("password=hunter2 and api key: abc123def"),
            [("password", "password=hunter2"), ("password", "abc123def")]
        );
    }

    #[test]
    fn a_private_key_ends_at_its_own_end() {
        let block = "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----";
        assert_eq!(kinds(&format!("before {block} after")), [("private_key", block)]);
        assert_eq!(
            kinds("x -----BEGIN PRIVATE KEY-----\nMIIabc"),
            [("private_key", "-----BEGIN PRIVATE KEY-----\nMIIabc")]
        );
    }

    #[test]
    fn talk_about_secrets_is_none() {
        for text in [
            "the password policy",
            "API key rotation plan",
            "a token bucket",
            "wg_short_key",
            "key: value",
            "deploy with [secret:api_key], not [secret:password].",
        ] {
            assert_eq!(kinds(text), [], "{text}");
        }
    }

    #[test]
    fn a_name_makes_a_value_a_secret() {
        for (name, value, expected) in [
            ("password", "correct horse", true),
            ("DB_PASSWORD", "hunter2", true),
            ("client-secret", "hunter2", true),
            ("api_key", "hunter", true),
            ("access_token", "a1b2c3d4", true),
            ("primary_key", "user_id", false),
            ("token", "bucket", false),
            ("monkey", "hunter2", false),
            ("passwords_policy", "hunter2", false),
            ("password", "[secret:password]", false),
            ("pin", "1", false),
        ] {
            assert_eq!(is_named_secret(name, value), expected, "{name} {value}");
        }
    }
}
