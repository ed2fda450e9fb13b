//! What every request passes before its handler: the host and origin that it names, limits of rate and size, and who sent it.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tracing::field::Empty;

use crate::accounts::{Caller, SESSION_DAYS, Scope};
use crate::endpoint::Need;
use crate::oauth::{self, Origin};
use crate::problem::Problem;
use crate::routes::openai;
use crate::web::Shared;

/// The name of the cookie with a session's token, without TLS. With TLS it has a prefix, by which browsers take it from this
/// very host and over TLS alone.
pub(crate) const COOKIE: &str = "azera_session";
pub(crate) const SECURE_COOKIE: &str = "__Host-azera_session";

/// The header in which requests of a session repeat its CSRF token.
pub(crate) const CSRF_HEADER: &str = "x-csrf-token";

/// Longest time in which a small body of a request must arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(20);

/// The bytes a second of a slow line, over which the largest body of a route still arrives in time.
const SLOW_LINE: usize = 128 << 10;

/// What pages may load: this server's own files, and nothing inline.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; font-src 'self'; media-src 'self' blob:; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'";

/// Headers of every answer.
const HEADERS: [(&str, &str); 7] = [
    ("content-security-policy", CONTENT_POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=(self)"),
];

/// The address of the connection's other end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// The client, as far as the connection and trusted proxies tell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client {
    pub(crate) address: IpAddr,
    /// Whether the client speaks TLS, to a trusted proxy.
    pub(crate) is_secure: bool,
    /// Whether the request comes from this machine, without a proxy in between.
    pub(crate) is_local: bool,
}

impl Client {
    fn of(peer: IpAddr, headers: &HeaderMap, proxies: &[IpAddr]) -> Self {
        let forwarded = || headers.get_all("x-forwarded-for").iter().filter_map(|value| value.to_str().ok());
        let mut address = peer;
        if proxies.contains(&peer) {
            // Each proxy appends whom it heard from. What stands left of the last untrusted address is made up.
            let hops: Vec<&str> = forwarded().flat_map(|value| value.split(',')).collect();
            for hop in hops.iter().rev() {
                let Some(hop) = hop_of(hop.trim()) else { break };
                address = hop;
                if !proxies.contains(&hop) {
                    break;
                }
            }
        }
        let proto = headers.get("x-forwarded-proto").and_then(|value| value.to_str().ok());
        let was_forwarded =
            ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"];
        Self {
            address,
            is_secure: proxies.contains(&peer) && proto == Some("https"),
            is_local: peer.is_loopback() && !was_forwarded.iter().any(|name| headers.contains_key(*name)),
        }
    }
}

/// Returns the address in an entry of `X-Forwarded-For`. Some proxies add the port: `192.0.2.1:4711`, `[2001:db8::1]:4711`.
fn hop_of(entry: &str) -> Option<IpAddr> {
    let bracketed = entry.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(entry);
    let address = bracketed.parse().or_else(|_| entry.parse::<SocketAddr>().map(|with_port| with_port.ip()));
    address.ok().map(|address: IpAddr| address.to_canonical())
}

impl Client {
    /// Returns the name of the session's cookie.
    fn cookie(&self) -> &'static str {
        if self.is_secure { SECURE_COOKIE } else { COOKIE }
    }

    /// Returns the name under which this client's requests of a kind are counted.
    pub(crate) fn bucket(&self, kind: &str) -> String {
        format!("{kind} {}", network(self.address))
    }
}

/// Returns what counts as one client. Whoever has one IPv6 address has the whole network of 64 bits.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
    }
}

/// Checks host, origin and rate, and adds the headers of every answer.
pub(crate) async fn outer(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let speaks_openai = openai::speaks_openai(request.uri().path());
    let is_api = speaks_openai || request.uri().path().starts_with("/api/");
    let is_mcp = request.uri().path() == "/mcp";
    let sent = request.headers().contains_key(header::AUTHORIZATION);
    let mut origin = None;
    let mut response = match entering(&shared, &request) {
        Ok((client, reached)) => {
            let mut request = request;
            origin = is_mcp.then(|| reached.clone());
            request.extensions_mut().insert(client);
            request.extensions_mut().insert(reached);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    };
    if speaks_openai {
        response = openai::errors_of_openai(response);
    }
    if let Some(origin) = &origin {
        oauth::challenge(&mut response, origin, sent);
    }
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if is_api && !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

fn entering(shared: &Shared, request: &Request) -> Result<(Client, Origin), Problem> {
    let headers = request.headers();
    let host = authority(request).ok_or_else(|| Problem::invalid("The request names no host."))?;
    if !shared.serves(name_of(host)) {
        let detail = "This address is not one of mine. Add its name to http.allowed_hosts, if it is yours.";
        return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, "unknown_host", detail));
    }
    if !is_safe(request.method()) {
        check_origin(headers, host)?;
    }
    let peer = request.extensions().get::<Peer>().map(|peer| peer.0);
    let peer = peer.ok_or_else(|| Problem::internal(&"a request without an address"))?;
    let mut client = Client::of(peer, headers, &shared.settings.trusted_proxies);
    // A name for other machines came through a proxy, even if that does not say so.
    client.is_local &= shared.is_own_name(name_of(host));
    shared.requests.take(&client.bucket("ip"), shared.clock.now()).map_err(Problem::too_many)?;
    let origin = Origin::of(host, &client);
    Ok((client, origin))
}

fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

fn authority(request: &Request) -> Option<&str> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().ok(),
        (Some(_), Some(_)) => None,
        (None, _) => request.uri().authority().map(|authority| authority.as_str()),
    }
}

/// Returns the name in an authority, without its port.
fn name_of(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => authority,
    }
}

/// Refuses requests that another site's page sends. Programs that are no browser send neither header.
fn check_origin(headers: &HeaderMap, host: &str) -> Result<(), Problem> {
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let foreign = || Problem::forbidden("foreign_origin", "Another site's page may not do that.");
    if let Some(origin) = text(header::ORIGIN) {
        let of = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
        if !of.is_some_and(|of| of.eq_ignore_ascii_case(host)) {
            return Err(foreign());
        }
    }
    match text(HeaderName::from_static("sec-fetch-site")) {
        None | Some("same-origin" | "none") => Ok(()),
        Some(_) => Err(foreign()),
    }
}

/// What a route requires.
#[derive(Clone)]
pub(crate) struct Admission {
    pub(crate) shared: Arc<Shared>,
    /// The path of the route, with the names of its parts.
    pub(crate) path: &'static str,
    pub(crate) need: Need,
    pub(crate) body_bytes: usize,
}

/// Reads the body, says who sent the request, and lets it pass if that is somebody who may.
pub(crate) async fn admit(State(admission): State<Admission>, request: Request, next: Next) -> Response {
    let span = tracing::info_span!(
        "request",
        otel.kind = "server",
        http.request.method = request.method().as_str(),
        http.route = admission.path,
        http.response.status_code = Empty,
    );
    let response = match admitted(&admission, request, next).await {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    };
    span.record("http.response.status_code", response.status().as_u16());
    response
}

async fn admitted(admission: &Admission, request: Request, next: Next) -> Result<Response, Problem> {
    let (shared, now) = (&admission.shared, admission.shared.clock.now());
    let client = *request.extensions().get::<Client>().ok_or_else(|| Problem::internal(&"no client"))?;
    let origin = request.extensions().get::<Origin>().ok_or_else(|| Problem::internal(&"no origin"))?;
    let is_command = admission.need == Need::Machine
        && bearer(request.headers()).is_some_and(|key| shared.is_of_machine(key, &client));
    // A command of this machine is nobody's account, and there need be none.
    let caller = if is_command { None } else { identify(shared, &client, origin, request.headers()).await? };
    if !is_command {
        allow(admission.need, caller.as_ref(), &client)?;
    }
    if let Some(caller) = &caller {
        shared.requests.take(&format!("account {}", caller.account), now).map_err(Problem::too_many)?;
        if let Some(open) = caller.session.as_ref().filter(|_| !is_safe(request.method())) {
            let sent = request.headers().get(CSRF_HEADER).and_then(|value| value.to_str().ok()).unwrap_or_default();
            if !crate::secrets::same(sent, &open.csrf) {
                let detail = "The header X-CSRF-Token is missing or old. GET /api/session gives the present one.";
                return Err(Problem::forbidden("csrf", detail));
            }
        }
    }
    let mut request = read_body(request, admission).await?;
    let session = caller.as_ref().and_then(|caller| Some((caller.account.clone(), caller.session.clone()?)));
    // A token for `/mcp` stands for nobody elsewhere, not even where everybody may ask.
    let is_for = |caller: &Caller| caller.grant.is_none() || admission.need == Need::Scope(Scope::Mcp);
    if let Some(caller) = caller.filter(is_for) {
        request.extensions_mut().insert(caller);
    }
    let mut response = completed(request, next).await?;
    if let Some((account, open)) = session {
        shared.accounts.note_session(&account, &open).await?;
        if open.is_due
            && !response.headers().contains_key(header::SET_COOKIE)
            && let Some(token) = shared.accounts.renew(&account, &open).await?
        {
            set_cookie(&mut response, &token, &client);
        }
    }
    Ok(response)
}

/// Handles a request. A change runs to its end even if the client goes away, so that none is done by half.
async fn completed(request: Request, next: Next) -> Result<Response, Problem> {
    if is_safe(request.method()) {
        return Ok(next.run(request).await);
    }
    tokio::spawn(next.run(request)).await.map_err(|error| Problem::internal(&error))
}

/// Returns the key or the token that a request carries.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (kind, key) = value.split_once(' ')?;
    kind.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

/// Returns who sent a request; `None` for somebody unknown. A wrong key is an error, and counts as an attempt to guess.
async fn identify(
    shared: &Shared,
    client: &Client,
    origin: &Origin,
    headers: &HeaderMap,
) -> Result<Option<Caller>, Problem> {
    if headers.contains_key(header::AUTHORIZATION) {
        let caller = bearer(headers).and_then(|key| shared.by_token(key, client, origin));
        let Some(caller) = caller else {
            // A key that works is not refused because of others that do not.
            shared.failures.take(&client.bucket("key"), shared.clock.now()).map_err(Problem::too_many)?;
            return Err(Problem::unauthorized());
        };
        if let Some(key) = &caller.key {
            shared.accounts.note_key(&caller.account, key).await?;
        }
        if let Some(grant) = &caller.grant {
            shared.accounts.note_grant(&caller.account, grant).await?;
        }
        return Ok(Some(caller));
    }
    Ok(cookie(headers, client.cookie()).and_then(|token| shared.accounts.by_session(token)))
}

fn allow(need: Need, caller: Option<&Caller>, client: &Client) -> Result<(), Problem> {
    match (need, caller) {
        (Need::Public, _) => Ok(()),
        (Need::LocalOrAdmin, _) if client.is_local => Ok(()),
        (_, Some(caller)) => permit(need, caller),
        (_, None) => Err(Problem::unauthorized()),
    }
}

/// Fails if a caller lacks what something needs.
pub(crate) fn permit(need: Need, caller: &Caller) -> Result<(), Problem> {
    let scope = |scope: Scope| {
        let detail = || format!("This needs the scope {}, which your account or key does not have.", scope.as_str());
        if caller.scopes.contains(&scope) { Ok(()) } else { Err(Problem::forbidden("scope", detail())) }
    };
    match need {
        Need::Public => Ok(()),
        Need::Scope(Scope::Mcp) => scope(Scope::Mcp),
        _ if caller.grant.is_some() => {
            Err(Problem::forbidden("audience", "This token is for the Model Context Protocol alone."))
        }
        Need::Session if caller.session.is_some() => Ok(()),
        Need::Account if caller.pass.is_none() && !caller.is_local => Ok(()),
        Need::Account => Err(Problem::forbidden("token", "A token may not do that. Use the key that made it.")),
        Need::Session => Err(Problem::forbidden("session", "A key may not do that. Log in with your password.")),
        Need::Scope(needed) => scope(needed),
        Need::LocalOrAdmin => scope(Scope::Admin),
        Need::Local if caller.is_local => Ok(()),
        Need::Local | Need::Machine => Err(Problem::forbidden("local", "Only commands on this machine may do that.")),
    }
}

/// Returns the request with its body in memory.
async fn read_body(request: Request, admission: &Admission) -> Result<Request, Problem> {
    let (parts, body) = request.into_parts();
    let most = admission.body_bytes;
    let read = tokio::time::timeout(body_time(most), Limited::new(body, most).collect()).await;
    let slow = Problem::new(StatusCode::REQUEST_TIMEOUT, "slow", "The body arrived too slowly.");
    match read.map_err(|_| slow)? {
        Ok(body) => Ok(Request::from_parts(parts, Body::from(body.to_bytes()))),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large(admission.path, most)),
        Err(_) => Err(Problem::invalid("The body could not be read.")),
    }
}

/// Returns the time in which a body of at most so many bytes must arrive.
fn body_time(most: usize) -> Duration {
    BODY_TIMEOUT.max(Duration::from_secs((most / SLOW_LINE) as u64))
}

/// Returns the error about a body that is larger than a route takes.
fn too_large(path: &str, most: usize) -> Problem {
    let mut detail = format!("The body is larger than {most} bytes.");
    if openai::speaks_openai(path) {
        detail.push_str(" Shorten the history: only its last message is read, so earlier pictures can go.");
    }
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail)
}

/// Returns the token in the session's cookie. With several cookies of the name, there is none: another page set one.
fn cookie<'a>(headers: &'a HeaderMap, named: &str) -> Option<&'a str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut tokens = pairs.filter(|(name, _)| *name == named).map(|(_, token)| token);
    tokens.next().filter(|_| tokens.next().is_none())
}

/// Sets the session's cookie, which no script can read and no other site's request carries.
pub(crate) fn set_cookie(response: &mut Response, token: &str, client: &Client) {
    let seconds = SESSION_DAYS * 24 * 60 * 60;
    put_cookie(response, &format!("{}={token}; Max-Age={seconds}", client.cookie()), client);
}

/// Removes the session's cookie.
pub(crate) fn clear_cookie(response: &mut Response, client: &Client) {
    put_cookie(response, &format!("{}=; Max-Age=0", client.cookie()), client);
}

fn put_cookie(response: &mut Response, cookie: &str, client: &Client) {
    let secure = if client.is_secure { "; Secure" } else { "" };
    // Tokens are letters, digits, `-` and `_`.
    if let Ok(value) = HeaderValue::from_str(&format!("{cookie}; Path=/; HttpOnly; SameSite=Strict{secure}")) {
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn only_trusted_proxies_say_who_the_client_is() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let proxies = [ip("10.0.0.1"), ip("10.0.0.2")];
        #[track_caller]
        fn check(peer: IpAddr, forwarded: &'static str, proxies: &[IpAddr], want: IpAddr) {
            let headers = headers(&[("x-forwarded-for", forwarded)]);
            let client = Client::of(peer, &headers, proxies);
            assert_eq!(client.address, want, "{forwarded} by {peer}");
            assert!(!client.is_local);
        }
        check(ip("203.0.113.9"), "198.51.100.1", &proxies, ip("203.0.113.9"));
        check(ip("10.0.0.1"), "198.51.100.1", &proxies, ip("198.51.100.1"));
        check(ip("10.0.0.1"), "1.1.1.1, 198.51.100.1, 10.0.0.2", &proxies, ip("198.51.100.1"));
        check(ip("10.0.0.1"), "1.1.1.1, nonsense", &proxies, ip("10.0.0.1"));
        check(ip("10.0.0.1"), "198.51.100.1:4711", &proxies, ip("198.51.100.1"));
        check(ip("10.0.0.1"), "[2001:db8::1]:4711, 10.0.0.2:80", &proxies, ip("2001:db8::1"));
        check(ip("10.0.0.1"), "1.1.1.1, 198.51.100.1:port", &proxies, ip("10.0.0.1"));
        check(ip("127.0.0.1"), "198.51.100.1", &proxies, ip("127.0.0.1"));
        assert!(Client::of(ip("127.0.0.1"), &HeaderMap::new(), &proxies).is_local);
    }

    #[test]
    fn a_network_of_64_bits_is_one_client() {
        let bucket = |address: &str| {
            let client = Client { address: address.parse().unwrap(), is_secure: false, is_local: false };
            client.bucket("ip")
        };
        assert_eq!(bucket("2001:db8:1:2::1"), bucket("2001:db8:1:2:ffff::9"));
        assert_ne!(bucket("2001:db8:1:2::1"), bucket("2001:db8:1:3::1"));
        assert_ne!(bucket("203.0.113.1"), bucket("203.0.113.2"));
    }

    #[test]
    fn an_origin_must_be_the_host_itself() {
        let check = |pairs: &[(&'static str, &'static str)]| check_origin(&headers(pairs), "localhost:3000").is_ok();
        assert!(check(&[]));
        assert!(check(&[("origin", "http://localhost:3000"), ("sec-fetch-site", "same-origin")]));
        for origin in
            ["http://evil.example", "http://localhost:3001", "null", "file://localhost:3000", "http://localhost"]
        {
            assert!(!check(&[("origin", origin)]), "{origin}");
        }
        assert!(!check(&[("sec-fetch-site", "cross-site")]));
        assert!(!check(&[("sec-fetch-site", "same-site")]));
    }

    #[test]
    fn a_large_body_has_the_time_that_a_slow_line_needs() {
        assert_eq!(body_time(16 << 10), BODY_TIMEOUT);
        assert_eq!(body_time(crate::endpoint::MAX_BODY_BYTES), BODY_TIMEOUT);
        // 16 MB of pictures in base64, at a megabit a second.
        let megabits = crate::shown::MAX_BODY_BYTES as u64 * 8 / 1_048_576;
        assert!(body_time(crate::shown::MAX_BODY_BYTES) >= Duration::from_secs(megabits - 1));
    }

    #[test]
    fn a_conversation_that_is_too_long_says_how_to_shorten_it() {
        assert!(too_large("/v1/chat/completions", 5).detail.contains("than 5 bytes. Shorten the history"));
        assert_eq!(too_large("/api/chat", 5).detail, "The body is larger than 5 bytes.");
    }

    #[test]
    fn two_session_cookies_are_none() {
        let of = |line: &'static str, name| cookie(&headers(&[("cookie", line)]), name).map(str::to_owned);
        assert_eq!(of("a=1; azera_session=x; b=2", COOKIE).as_deref(), Some("x"));
        assert_eq!(of("azera_session=x; azera_session=y", COOKIE), None);
        // Over TLS, only the cookie counts that no other host can have set.
        assert_eq!(of("azera_session=x; __Host-azera_session=y", SECURE_COOKIE).as_deref(), Some("y"));
        assert_eq!(of("azera_session=x", SECURE_COOKIE), None);
    }
}
