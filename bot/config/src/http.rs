use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

// The doc comments of these fields are also the comments of azera.example.toml, so they address the operator.

/// The web of `azera run`: an HTTP server for browsers, programs and monitoring. bot/docs/web.md describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Http {
    /// Serve the web.
    pub enabled: bool,
    /// The address and port to listen on. Other machines should reach it through a reverse proxy with TLS only.
    #[schemars(length(min = 1, max = 64))]
    pub listen: String,
    /// The IP addresses of your reverse proxies. Azera believes only them about who the client is and whether it uses TLS.
    #[schemars(length(max = 100), inner(length(min = 1, max = 64)))]
    pub trusted_proxies: Vec<String>,
    /// The host names, without port, by which people reach the web besides localhost. Requests for other names are refused.
    #[schemars(length(max = 100), inner(length(min = 1, max = 255)))]
    pub allowed_hosts: Vec<String>,
}

impl Default for Http {
    fn default() -> Self {
        Self { enabled: true, listen: "127.0.0.1:3000".into(), trusted_proxies: Vec::new(), allowed_hosts: Vec::new() }
    }
}

impl Http {
    /// Returns values that are no addresses: the key, and what is wrong.
    pub(crate) fn contradictions(&self) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        if self.listen.parse::<std::net::SocketAddr>().is_err() {
            let message = format!(
                "`http.listen` must be an IP address and a port, such as 127.0.0.1:3000, not {:?}",
                self.listen
            );
            found.push(("listen", message));
        }
        for proxy in self.trusted_proxies.iter().filter(|proxy| proxy.parse::<std::net::IpAddr>().is_err()) {
            found.push(("trusted_proxies", format!("`http.trusted_proxies` must hold IP addresses, not {proxy:?}")));
        }
        for host in self.allowed_hosts.iter().filter(|host| host.contains(['/', ':', ' ', '*'])) {
            let message = format!("`http.allowed_hosts` must hold plain names such as azera.example.org, not {host:?}");
            found.push(("allowed_hosts", message));
        }
        found
    }
}
