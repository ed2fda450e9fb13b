//! Options of `azera mcp`.

use clap::Args;

use super::{DataOption, Viewer};

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  azera mcp                                   the memory of this machine's person\n  azera mcp --as Ann --persona areza\n  AZERA_MCP_KEY=azk_... azera mcp --url http://127.0.0.1:3000/mcp\n\nClaude Desktop and Claude Code (.mcp.json):\n  {\"mcpServers\": {\"azera\": {\"command\": \"azera\", \"args\": [\"mcp\"]}}}\n\nWith a running Azera, the key says whose memory it is:\n  azera web key create claude --scope mcp --scope chat --scope memory:read --scope memory:write\n  {\"mcpServers\": {\"azera\": {\"command\": \"azera\", \"args\": [\"mcp\"], \"env\": {\"AZERA_MCP_KEY\": \"azk_...\"}}}}\n\nOr without this command:\n  {\"mcpServers\": {\"azera\": {\"type\": \"http\", \"url\": \"http://127.0.0.1:3000/mcp\", \"headers\": {\"Authorization\": \"Bearer azk_...\"}}}}\n\nThis command opens the data folder itself, and serves every other `azera mcp` of this user meanwhile. While an `azera run` holds the folder, it passes everything on to its web, with the key in AZERA_MCP_KEY."
)]
pub struct McpOptions {
    #[command(flatten)]
    pub viewer: Viewer,
    /// Address of a running Azera, ending in /mcp; needs a key in AZERA_MCP_KEY
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Let the client read the values of this person's vault; with a running Azera, the key needs `--scope vault` instead
    #[arg(long)]
    pub vault: bool,
    #[command(flatten)]
    pub data: DataOption,
}
