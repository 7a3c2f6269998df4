//! Paths of a vault. For the eye only: what a file is about stands in its front matter.

use std::fmt::Write as _;

use waggle_memory::id::MemoryId;
use waggle_memory::kind::Kind;

/// Longest folder and file stem in bytes: with the id and the folders, every path fits common file systems.
const SLUG_BYTES_MAX: usize = 60;

/// `<project or default>/<kind>/<slug>--<id>.md`.
pub(super) fn path_of(project: &str, kind: Kind, label: &str, id: MemoryId) -> String {
    let mut path = slug(project, "default");
    let _ = write!(path, "/{}/{}--{id}.md", kind.word(), slug(label, "memory"));
    path
}

/// Letters and digits of any script in lower case, joined by single hyphens. Never empty, never a name with a meaning.
fn slug(text: &str, or: &str) -> String {
    let mut out = String::new();
    let mut gap = false;
    for c in text.chars().flat_map(char::to_lowercase) {
        if !c.is_alphanumeric() {
            gap = !out.is_empty();
            continue;
        }
        if out.len() + c.len_utf8() + usize::from(gap) > SLUG_BYTES_MAX {
            break;
        }
        if gap {
            out.push('-');
        }
        gap = false;
        out.push(c);
    }
    if out.is_empty() {
        return or.to_owned();
    }
    if is_device(&out) {
        out.push('-');
    }
    out
}

/// Names that one family of operating systems keeps for devices, in any folder.
fn is_device(name: &str) -> bool {
    let numbered = |prefix: &str| {
        name.strip_prefix(prefix)
            .is_some_and(|rest| rest.len() == 1 && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    matches!(name, "con" | "prn" | "aux" | "nul") || numbered("com") || numbered("lpt")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_plain_whatever_the_label_says() {
        let id = "018f3c5a-0000-7000-8000-000000000001";
        let path = |project: &str, label: &str| path_of(project, Kind::Fact, label, id.parse().unwrap());
        assert_eq!(
            path("Team A", "We use  Postgres!"),
            format!("team-a/fact/we-use-postgres--{id}.md")
        );
        assert_eq!(
            path("", "../../etc/passwd"),
            format!("default/fact/etc-passwd--{id}.md")
        );
        assert_eq!(path("..", "\\\\x\0y"), format!("default/fact/x-y--{id}.md"));
        assert_eq!(path("CON", "Größe 漢字"), format!("con-/fact/größe-漢字--{id}.md"));
        assert!(path("p", &"ü".repeat(900)).len() < 200);
    }
}
