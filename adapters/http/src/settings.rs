use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use azera_adapter::Command;

/// How the web is served.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The reverse proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` count.
    pub trusted_proxies: Vec<IpAddr>,
    /// The host names, without port, by which people reach the web besides this machine's own.
    pub allowed_hosts: Vec<String>,
    /// The folder of [`crate::Local`], by which commands on this machine find the running web.
    pub folder: PathBuf,
    /// The commands that people may type in a chat.
    pub commands: &'static [Command],
    /// The version of the program.
    pub version: &'static str,
}
