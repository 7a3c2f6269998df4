//! What `waggle dev` prints when it is ready.

use std::path::Path;

use serde_json::json;

pub(crate) struct Ready<'a> {
    pub(crate) mcp_url: &'a str,
    pub(crate) admin_url: &'a str,
    pub(crate) api_key: &'a str,
    pub(crate) tenant: &'a str,
    pub(crate) data_dir: &'a Path,
    pub(crate) limits: bool,
    /// How to call this binary again.
    pub(crate) program: &'a str,
}

impl Ready<'_> {
    /// One line for programs.
    pub(crate) fn json(&self) -> String {
        let fields = json!({
            "mcp_url": self.mcp_url,
            "api_key": self.api_key,
            "tenant": self.tenant,
            "admin_url": self.admin_url,
            "data_dir": self.data_dir,
            "version": env!("CARGO_PKG_VERSION"),
        });
        format!("{fields}\n")
    }

    /// A block for people, ready to paste from.
    pub(crate) fn text(&self) -> String {
        let Self {
            mcp_url,
            admin_url,
            api_key,
            tenant,
            data_dir,
            limits,
            program,
        } = self;
        let limits = if *limits {
            "rate limits are on"
        } else {
            "rate limits are off for this key (use --limits)"
        };
        format!(
            r#"waggle {version} is ready (dev: one node, authentication on)

  MCP URL    {mcp_url}
  key        {api_key}
  tenant     {tenant}
  admin      {admin_url}   (health, /status, /metrics, tenants and keys)
  data       {data}
  limits     {limits}

Try it
  {program} memory add "we deploy on Fridays" && {program} memory search "when do we deploy"

Claude Code
  claude mcp add --transport http waggle {mcp_url} --header "Authorization: Bearer {api_key}"

Cursor, .cursor/mcp.json
  {{"mcpServers": {{"waggle": {{"url": "{mcp_url}", "headers": {{"Authorization": "Bearer {api_key}"}}}}}}}}

VS Code, .vscode/mcp.json
  {{"servers": {{"waggle": {{"type": "http", "url": "{mcp_url}", "headers": {{"Authorization": "Bearer {api_key}"}}}}}}}}

Codex, ~/.codex/config.toml
  [mcp_servers.waggle]
  url = "{mcp_url}"
  bearer_token_env_var = "WAGGLE_KEY"
  # and in the shell: export WAGGLE_KEY={api_key}

Ctrl-C ends it; the data stays, and the next start prints the same key.
"#,
            version = env!("CARGO_PKG_VERSION"),
            data = data_dir.display(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready() -> Ready<'static> {
        Ready {
            mcp_url: "http://127.0.0.1:7700/mcp",
            admin_url: "http://127.0.0.1:7701",
            api_key: "wg_dev_k_s_c",
            tenant: "dev",
            data_dir: Path::new("/data"),
            limits: false,
            program: "waggle",
        }
    }

    #[test]
    fn programs_get_one_line_of_json() {
        let line = ready().json();
        assert_eq!(line.matches('\n').count(), 1);
        let fields: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(fields["mcp_url"], "http://127.0.0.1:7700/mcp");
        assert_eq!(fields["tenant"], "dev");
    }

    #[test]
    fn snippets_for_editors_are_json() {
        let text = ready().text();
        let snippets: Vec<&str> = text
            .lines()
            .map(str::trim)
            .filter(|line| line.starts_with('{'))
            .collect();
        assert_eq!(snippets.len(), 2);
        for snippet in snippets {
            serde_json::from_str::<serde_json::Value>(snippet).expect("JSON");
        }
    }
}
