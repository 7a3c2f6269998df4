//! What a client shall be connected to, and how it gets the key.

/// The gateway and the key.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// Address of the MCP endpoint.
    pub(crate) url: String,
    /// The environment variable that holds the key when the client runs.
    pub(crate) variable: String,
    /// The key itself, when it is known; it gets into a file only where nothing else works, or on demand.
    pub(crate) key: Option<String>,
    pub(crate) way: Way,
    /// How the bridge is started; used with [`Way::Bridge`] only.
    pub(crate) bridge: Bridge,
}

/// How the client reaches the gateway, and where the key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// By URL; the client looks the key up in its environment or asks for it, if it can.
    Reference,
    /// By URL; the key stands in the client's file.
    KeyInFile,
    /// By `waggle mcp` as a child process, which reads the key from a file of its own.
    Bridge,
}

/// The child process that forwards to the gateway.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bridge {
    pub(crate) program: String,
    pub(crate) arguments: Vec<String>,
}

/// How a client writes "the value of an environment variable", or that it cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reference {
    /// `${NAME}`
    Braces,
    /// `${env:NAME}`
    EnvBraces,
    /// `{env:NAME}`
    CurlyEnv,
    /// A field of its own that names the variable.
    NamedField,
    /// The client asks once and keeps the answer in its secret store.
    Prompt,
    /// Only the text itself.
    Nothing,
}

/// Id of the question that a client asks, where it does.
pub(crate) const PROMPT_ID: &str = "waggle-key";

/// Stands in for a key that is not known here; a check accepts any key in its place.
pub(crate) const ANY_KEY: &str = "<the API key>";

impl Target {
    /// The value of the Authorization header in a client's file.
    pub(crate) fn authorization(&self, reference: Reference) -> String {
        let name = &self.variable;
        let key = || self.key.clone().unwrap_or_else(|| ANY_KEY.to_owned());
        let value = match reference {
            _ if self.way == Way::KeyInFile => key(),
            Reference::Braces => format!("${{{name}}}"),
            Reference::EnvBraces => format!("${{env:{name}}}"),
            Reference::CurlyEnv => format!("{{env:{name}}}"),
            Reference::Prompt => format!("${{input:{PROMPT_ID}}}"),
            Reference::NamedField | Reference::Nothing => key(),
        };
        format!("Bearer {value}")
    }

    /// Whether the key itself goes into the file of a client with this ability.
    pub(crate) fn puts_key_in_file(&self, reference: Reference) -> bool {
        match self.way {
            Way::Bridge => false,
            Way::KeyInFile => true,
            Way::Reference => reference == Reference::Nothing,
        }
    }
}
