//! Secrets in a text: key shapes and passwords. A clause that holds one makes no memory.
//!
//! One pass over the runs of characters between blanks; every check of a run is linear in it.

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
pub fn secrets(text: &str) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    let mut previous: [(&str, usize); 2] = [("", 0), ("", 0)];
    let mut private_key: Option<usize> = None;
    for run in text.split(char::is_whitespace) {
        let (start, end) = (at, at + run.len());
        at = end + text.get(end..).and_then(|t| t.chars().next()).map_or(0, char::len_utf8);
        if run.is_empty() {
            continue;
        }
        if run.contains("-----BEGIN") {
            private_key = Some(start);
        }
        if let Some(begin) = private_key {
            if run.contains("KEY-----") && text.get(begin..end).is_some_and(|t| t.contains("-----END")) {
                found.push((begin, end));
                private_key = None;
            }
            continue;
        }
        let bare = run.trim_matches(|c: char| !c.is_alphanumeric());
        if is_key(bare) || names_value(run) || has_credentials(run) || is_value_of(&previous, bare) {
            found.push((start, end));
        }
        previous = [previous[1], (run, start)];
    }
    // A key block that never ends hides all that follows.
    found.extend(
        private_key
            .filter(|b| text.get(*b..).is_some_and(|t| t.contains("PRIVATE KEY")))
            .map(|b| (b, text.len())),
    );
    found
}

fn is_key(run: &str) -> bool {
    let plain = |t: &str| {
        t.bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
    };
    if KEY_PREFIXES.iter().any(|(prefix, least)| {
        run.strip_prefix(prefix)
            .is_some_and(|rest| rest.len() >= *least && plain(rest))
    }) {
        return true;
    }
    // A JSON web token: three parts, the first an encoded object.
    run.starts_with("eyJ") && run.len() > 40 && run.matches('.').count() == 2 && plain(run)
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
    let mixed = value.len() >= 6
        && value.bytes().any(|b| b.is_ascii_digit())
        && value.bytes().any(|b| b.is_ascii_alphabetic())
        && value.len() < 200;
    name.len() <= 60 && SECRET_WORDS.contains(&name) && mixed
}
