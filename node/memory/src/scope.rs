//! Where a memory belongs inside its tenant: project, agent, session. Only the tenant is a wall by itself; these fields
//! choose and prefer.

use unicode_normalization::UnicodeNormalization;

/// The three fields as the caller wrote them; empty means "not given" (a memory without a project is tenant-wide).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Shown as first written; compared by [`name_key`].
    pub project: String,
    /// A label that the caller chooses; it is not the author. Compared by [`name_key`].
    pub agent_id: String,
    /// Compared byte for byte.
    pub session_id: String,
}

impl Scope {
    /// Longest value of each field in bytes.
    pub const FIELD_BYTES_MAX: usize = 256;

    /// The comparison key of the project.
    pub fn project_key(&self) -> String {
        name_key(&self.project)
    }

    /// The comparison key of the agent.
    pub fn agent_key(&self) -> String {
        name_key(&self.agent_id)
    }
}

/// How projects and agents are compared: trimmed, NFC, case folded. So "PP " and "pp" are one project, and "Straße" and
/// "STRASSE" are another: upper case first, because folding writes some letters out.
pub fn name_key(name: &str) -> String {
    name.trim()
        .nfc()
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .nfc()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_compare_without_case_space_and_composition() {
        assert_eq!(name_key(" PP "), "pp");
        assert_eq!(name_key("Cafe\u{301}"), name_key("CAFÉ"));
        assert_eq!(name_key("pp2"), "pp2");
        assert_eq!(name_key("Straße"), name_key("STRASSE"));
        assert_eq!(name_key("ΟΔΟΣ"), name_key("οδος"));
        assert_eq!(
            name_key(&name_key("Straße ﬁx")),
            name_key("Straße ﬁx"),
            "a key is its own key"
        );
    }
}
