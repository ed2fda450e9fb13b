//! Addresses and connections of servers.

use std::time::Duration;

use reqwest::{Client, Url, redirect};

use crate::config::Secret;

/// Checks the address and the key of a section of the configuration. Returns the address with a slash at its end, or what
/// is wrong.
pub(crate) fn checked(section: &str, url: &str, key: Option<&Secret>) -> Result<Url, String> {
    let mut base = Url::parse(url).map_err(|error| format!("{section}.url is not an address: {error}"))?;
    if !["http", "https"].contains(&base.scheme()) || base.host_str().is_none() {
        return Err(format!("{section}.url must begin with http:// or https://"));
    }
    if !base.username().is_empty() || base.password().is_some() {
        return Err(format!("{section}.url must hold no password; set {section}.key"));
    }
    if base.query().is_some() || base.fragment().is_some() {
        return Err(format!("{section}.url must end with the path"));
    }
    if key.is_some_and(|key| !key.expose().bytes().all(|byte| byte.is_ascii_graphic())) {
        return Err(format!("{section}.key holds a character that no key has"));
    }
    base.set_path(&format!("{}/", base.path().trim_end_matches('/')));
    Ok(base)
}

/// Makes a client that follows no redirect and uses no proxy of the environment, or says what is wrong.
pub(crate) fn client(connect: Duration) -> Result<Client, String> {
    let client = Client::builder()
        .connect_timeout(connect)
        .redirect(redirect::Policy::none())
        .no_proxy()
        .user_agent(concat!("azera/", env!("CARGO_PKG_VERSION")))
        .build();
    client.map_err(|error| format!("no connection can be made: {}", cause(error)))
}

/// Returns the innermost cause without the address, which the error names anyway.
pub(crate) fn cause(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
