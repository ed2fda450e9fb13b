//! The registration of a program (RFC 7591). Anybody may register, so a registration proves nothing and need not be kept: the id
//! of a client holds the registration itself. Nothing grows, however many programs register.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::{Host, Url};

use super::OAuthError;
use crate::accounts::checked_name;

/// The beginning of every client's id.
const PREFIX: &str = "azc_";

/// Longest id of a client, in bytes.
const MAX_ID_BYTES: usize = 2_048;

/// Most addresses of a client.
const MAX_ADDRESSES: usize = 5;

/// Longest address, in bytes.
const MAX_ADDRESS_BYTES: usize = 512;

/// The name of a client that gives none.
const NAMELESS: &str = "A program";

/// Schemes of known programs. Others belong to a domain (RFC 8252, section 7.1), so they hold a dot.
const SCHEMES: [&str; 6] = ["cursor", "vscode", "vscode-insiders", "windsurf", "zed", "claude"];

/// What a program registers. Further fields are ignored.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Registration {
    /// The name that the person sees.
    #[serde(default)]
    pub(crate) client_name: Option<String>,
    /// The addresses to which the person may be sent back.
    pub(crate) redirect_uris: Vec<String>,
    /// How the program wants to prove who it is. Every program is a public client, so the answer is always `none`.
    #[serde(default)]
    #[expect(dead_code, reason = "part of the description")]
    pub(crate) token_endpoint_auth_method: Option<String>,
}

/// A registered program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Registered {
    /// The name that the person sees.
    pub(crate) name: String,
    /// The addresses to which the person may be sent back.
    pub(crate) addresses: Vec<String>,
}

/// What the id of a client holds.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Held {
    n: String,
    r: Vec<String>,
}

impl Registered {
    /// Checks a registration.
    pub(crate) fn of(registration: &Registration) -> Result<Self, OAuthError> {
        let wrong = |why: String| OAuthError::new("invalid_client_metadata", why);
        let name = registration.client_name.as_deref().map(str::trim).filter(|name| !name.is_empty());
        let name = checked_name(name.unwrap_or(NAMELESS)).map_err(|problem| wrong(problem.detail))?;
        let addresses = registration.redirect_uris.clone();
        if addresses.is_empty() || addresses.len() > MAX_ADDRESSES {
            let why = format!("`redirect_uris` has 1 to {MAX_ADDRESSES} addresses.");
            return Err(OAuthError::new("invalid_redirect_uri", why));
        }
        for address in &addresses {
            check_address(address).map_err(|why| OAuthError::new("invalid_redirect_uri", why))?;
        }
        let registered = Self { name, addresses };
        if registered.id().len() > MAX_ID_BYTES {
            return Err(wrong("The name and the addresses are too long together.".to_owned()));
        }
        Ok(registered)
    }

    /// Returns the id of the client.
    pub(crate) fn id(&self) -> String {
        let held = Held { n: self.name.clone(), r: self.addresses.clone() };
        // Texts and lists are always JSON.
        let json = serde_json::to_vec(&held).unwrap_or_default();
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(json))
    }

    /// Reads the id of a client, and checks what it holds as if it were registered now.
    pub(crate) fn parse(id: &str) -> Option<Self> {
        if id.len() > MAX_ID_BYTES {
            return None;
        }
        let held = URL_SAFE_NO_PAD.decode(id.strip_prefix(PREFIX)?).ok()?;
        let Held { n, r } = serde_json::from_slice(&held).ok()?;
        let registration = Registration { client_name: Some(n), redirect_uris: r, token_endpoint_auth_method: None };
        // Only one text stands for a registration.
        Self::of(&registration).ok().filter(|registered| registered.id() == id)
    }

    /// Returns true if the person may be sent to this address: it is a registered one, to the letter. Programs on the person's own
    /// machine may take any free port (RFC 8252, section 7.3).
    pub(crate) fn may_return_to(&self, address: &str) -> bool {
        self.addresses.iter().any(|registered| registered == address || is_same_but_port(registered, address))
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

fn is_same_but_port(registered: &str, address: &str) -> bool {
    let (Ok(mut registered), Ok(mut asked)) = (Url::parse(registered), Url::parse(address)) else { return false };
    if check_address(address).is_err() || registered.scheme() != "http" || !is_loopback(&registered) {
        return false;
    }
    let without_port = |url: &mut Url| url.set_port(None).is_ok();
    without_port(&mut registered) && without_port(&mut asked) && registered == asked
}

/// Returns the place that an address leads to, in words for the person.
pub(crate) fn place_of(address: &str) -> String {
    match Url::parse(address) {
        Ok(url) if url.scheme() == "http" || url.scheme() == "https" => {
            let host = url.host_str().unwrap_or_default().to_owned();
            if is_loopback(&url) { format!("a program on your computer ({host})") } else { host }
        }
        Ok(url) => format!("a program on your computer ({}:)", url.scheme()),
        Err(_) => String::new(),
    }
}

/// Fails unless an address is one to which a person may be sent. It must stand as browsers write it, so that nobody reads it in
/// another way.
fn check_address(address: &str) -> Result<(), String> {
    let refused = |why: &str| Err(format!("The address {address:?} {why}."));
    if address.len() > MAX_ADDRESS_BYTES {
        return Err(format!("An address has at most {MAX_ADDRESS_BYTES} bytes."));
    }
    let Ok(url) = Url::parse(address) else { return refused("is none") };
    if url.as_str() != address && url.as_str().strip_suffix('/') != Some(address) {
        return refused("is not written as browsers write it");
    }
    if url.fragment().is_some() || !url.username().is_empty() || url.password().is_some() {
        return refused("has a fragment or a password");
    }
    match url.scheme() {
        "https" if url.has_host() => Ok(()),
        "http" if is_loopback(&url) => Ok(()),
        "http" => refused("needs https, unless it is on the person's own machine"),
        "https" => refused("names no host"),
        scheme if scheme.contains('.') || SCHEMES.contains(&scheme) => Ok(()),
        _ => refused("has a scheme that no known program has"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registered(addresses: &[&str]) -> Result<Registered, OAuthError> {
        let redirect_uris = addresses.iter().map(|&address| address.to_owned()).collect();
        let name = Some("Tool".to_owned());
        Registered::of(&Registration { client_name: name, redirect_uris, token_endpoint_auth_method: None })
    }

    #[test]
    fn addresses_are_secure_or_on_the_own_machine() {
        for good in [
            "https://claude.ai/api/mcp/auth_callback",
            "http://127.0.0.1:33418",
            "http://127.0.0.1:33418/",
            "http://localhost:1/cb?x=1",
            "http://[::1]:9/cb",
            "com.example.app:/callback",
            "cursor://anysphere.cursor-retrieval/oauth/callback",
        ] {
            assert!(registered(&[good]).is_ok(), "{good}");
        }
        for bad in [
            "",
            "nonsense",
            "http://example.org/cb",
            "http://localhost.example.org/cb",
            "http://127.0.0.1.example.org/cb",
            "https://user:pw@example.org/cb",
            "https://example.org/cb#fragment",
            "https://EXAMPLE.org/cb",
            "https:/example.org",
            "https://example.org/a/../cb",
            "https://example.org\\@evil.example/cb",
            " https://example.org/cb",
            "https://example.org/c b",
            "javascript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "vbscript:x",
            "about:blank",
            "http://0x7f.1/cb",
        ] {
            assert!(registered(&[bad]).is_err(), "{bad}");
        }
        assert!(registered(&[]).is_err() && registered(&["https://a.example/"; 6]).is_err());
        let long = format!("https://a.example/{}", "x".repeat(600));
        assert!(registered(&[&long]).is_err());
        let many = format!("https://a.example/{}", "x".repeat(450));
        assert!(registered(&[many.as_str(); 5]).is_err(), "the id would be too long");
    }

    #[test]
    fn an_id_is_the_registration_and_nothing_else() {
        let client = registered(&["https://a.example/cb", "http://127.0.0.1/cb"]).unwrap();
        assert_eq!(Registered::parse(&client.id()), Some(client.clone()));
        let forged = |held: &str| format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(held));
        for wrong in [
            String::new(),
            "azc_".to_owned(),
            client.id() + "A",
            forged(r#"{"n":"Tool","r":[]}"#),
            forged(r#"{"n":"Tool","r":["javascript:alert(1)"]}"#),
            forged(r#"{"n":"To\u200bol","r":["https://a.example/cb"]}"#),
            forged(r#"{ "n":"Tool","r":["https://a.example/cb"]}"#),
            forged(r#"{"n":"Tool","r":["https://a.example/cb"],"x":1}"#),
            "x".repeat(5_000),
        ] {
            assert_eq!(Registered::parse(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn people_return_to_registered_addresses_alone() {
        let client =
            registered(&["https://a.example/cb", "http://127.0.0.1:1000/cb?x=1", "http://localhost/cb"]).unwrap();
        for good in [
            "https://a.example/cb",
            "http://127.0.0.1:1000/cb?x=1",
            "http://127.0.0.1:2000/cb?x=1",
            "http://localhost:3/cb",
        ] {
            assert!(client.may_return_to(good), "{good}");
        }
        for bad in [
            "https://a.example/cb/",
            "https://a.example/cb?y=1",
            "https://a.example:444/cb",
            "https://a.example.evil.example/cb",
            "http://127.0.0.1:2000/cb",
            "http://127.0.0.2:1000/cb?x=1",
            "http://localhost:1000/cb?x=1",
            "https://127.0.0.1:1000/cb?x=1",
            "http://127.0.0.1:2000/cb?x=1#y",
            "http://a@127.0.0.1:2000/cb?x=1",
            "http://127.0.0.1:2000\\@evil.example/cb?x=1",
        ] {
            assert!(!client.may_return_to(bad), "{bad}");
        }
    }
}
