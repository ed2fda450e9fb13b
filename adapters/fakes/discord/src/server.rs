//! The API's socket: TLS, and one handler for all paths.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{FromRequest, Multipart, Request};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::server::TlsStream;

use crate::Shared;
use crate::check::Description;
use crate::faults::{Scope, What};
use crate::rest::{self, Call, File, Reply};
use crate::voice::welcome;
use crate::world::RecordedRequest;

/// Largest request in bytes.
const MAX_BODY: usize = 32 << 20;

struct Tls {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
}

impl axum::serve::Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let Ok((stream, from)) = self.tcp.accept().await else { continue };
            stream.set_nodelay(true).ok();
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, from);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}

/// Creates a certificate authority, and a certificate for `discord.com` signed by it.
fn certificates() -> (String, ServerConfig) {
    let mut authority = CertificateParams::new(Vec::<String>::new()).expect("parameters");
    authority.distinguished_name.push(DnType::CommonName, "the authority of the tests");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().expect("a key");
    let root = authority.self_signed(&authority_key).expect("a certificate");
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate().expect("a key");
    let names = ["discord.com", "cdn.discordapp.com", "127.0.0.1"].map(str::to_owned).to_vec();
    let mut own = CertificateParams::new(names).expect("names");
    // Some clients take a certificate with its authority's name for self-signed.
    own.distinguished_name.push(DnType::CommonName, "discord.com");
    let certificate = own.signed_by(&key, &issuer).expect("a certificate");
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("a configuration");
    (root.pem(), config)
}

pub(crate) async fn listen(shared: Arc<Shared>, check: Option<Description>) -> (SocketAddr, String) {
    let (root, config) = certificates();
    let tcp = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = tcp.local_addr().expect("an address");
    let check = Arc::new(check);
    let voice = shared.clone();
    // The voice gateway, with its version in the query.
    let upgrade = move |uri: Uri, upgrade: WebSocketUpgrade| {
        let version = pairs(&uri).iter().find(|(name, _)| name == "v").and_then(|(_, version)| version.parse().ok());
        std::future::ready(welcome(voice.clone(), version.unwrap_or(1), upgrade))
    };
    let app = Router::new().route("/", axum::routing::get(upgrade)).fallback(move |request: Request| {
        let (shared, check) = (shared.clone(), check.clone());
        async move { answer(&shared, check.as_ref().as_ref(), request).await }
    });
    let listener = Tls { tcp, acceptor: TlsAcceptor::from(Arc::new(config)) };
    tokio::spawn(async move { axum::serve(listener, app).await });
    (address, root)
}

async fn answer(shared: &Shared, check: Option<&Description>, request: Request) -> Response {
    let (method, uri, headers) = (request.method().clone(), request.uri().clone(), request.headers().clone());
    if let Some(name) = uri.path().strip_prefix("/attachments/") {
        let found = shared.lock().uploads.get(name).cloned();
        return found.map_or(StatusCode::NOT_FOUND.into_response(), IntoResponse::into_response);
    }
    let Some(path) = uri.path().strip_prefix("/api/v10") else {
        return StatusCode::NOT_FOUND.into_response();
    };
    // Some clients encode `@original` like this.
    let path = path.replace("%40", "@");
    let query = pairs(&uri);
    let (body, files) = match content(&headers, request).await {
        Ok(content) => content,
        Err(status) => return status.into_response(),
    };
    let problem = check.and_then(|check| check.problem(method.as_str(), &path, &query, body.as_ref()));
    let call = Call { method: method.to_string(), path: path.clone(), query, body, files, token: token(&headers) };
    let wanted = reply(shared, &call, problem);
    shared.change(|world| {
        let requests = RecordedRequest { method: call.method, path, body: call.body, status: wanted.status };
        world.requests.push(requests);
    });
    respond(wanted)
}

/// Returns the response, after the injected faults.
fn reply(shared: &Shared, call: &Call, problem: Option<String>) -> Reply {
    let fault = shared.change(|world| {
        if let Some(problem) = problem {
            world.violations.push(problem);
        }
        world.fault(&call.method, &call.path)
    });
    match fault {
        Some(What::Fails(status)) => Reply::failure(status, 0, "ordered trouble"),
        Some(What::DoneButFails(status)) => {
            shared.change(|world| rest::handle(world, call));
            Reply::failure(status, 0, "ordered trouble")
        }
        Some(What::Limited(scope, wait)) => limited(scope, wait.as_secs_f64()),
        None => shared.change(|world| match world.over_the_limit() {
            Some(wait) => limited(Scope::Global, wait),
            None => rest::handle(world, call),
        }),
    }
}

fn limited(scope: Scope, seconds: f64) -> Reply {
    let global = scope == Scope::Global;
    let mut reply =
        Reply::new(429, json!({"message": "You are being rate limited.", "retry_after": seconds, "global": global}));
    let scope = match scope {
        Scope::User => "user",
        Scope::Shared => "shared",
        Scope::Global => "global",
    };
    reply.headers = vec![("retry-after", format!("{seconds}")), ("x-ratelimit-scope", scope.to_owned())];
    if global {
        reply.headers.push(("x-ratelimit-global", "true".to_owned()));
    }
    reply
}

fn respond(reply: Reply) -> Response {
    let status = StatusCode::from_u16(reply.status).expect("a status");
    let mut response = match reply.body {
        Some(body) => (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response(),
        None => status.into_response(),
    };
    for (name, value) in reply.headers {
        response.headers_mut().insert(name, value.parse().expect("a header"));
    }
    response
}

fn token(headers: &HeaderMap) -> Option<String> {
    headers.get(header::AUTHORIZATION)?.to_str().ok().map(str::to_owned)
}

fn pairs(uri: &Uri) -> Vec<(String, String)> {
    let pair = |pair: &str| pair.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    uri.query().unwrap_or_default().split('&').filter_map(pair).collect()
}

/// Returns the request's JSON and files.
async fn content(headers: &HeaderMap, request: Request) -> Result<(Option<Value>, Vec<File>), StatusCode> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let (mut body, mut files) = (None, Vec::new());
    if kind.starts_with("multipart/form-data") {
        let mut parts = Multipart::from_request(request, &()).await.map_err(|_| StatusCode::BAD_REQUEST)?;
        while let Some(part) = parts.next_field().await.map_err(|_| StatusCode::BAD_REQUEST)? {
            let (field, name) = (part.name().map(str::to_owned), part.file_name().map(str::to_owned));
            let bytes: Bytes = part.bytes().await.map_err(|_| StatusCode::BAD_REQUEST)?;
            match (field.as_deref(), name) {
                (Some("payload_json"), _) => {
                    body = Some(serde_json::from_slice(&bytes).map_err(|_| StatusCode::BAD_REQUEST)?);
                }
                (Some(_), Some(name)) => files.push(File { name, bytes: bytes.to_vec() }),
                _ => return Err(StatusCode::BAD_REQUEST),
            }
        }
    } else {
        let bytes = axum::body::to_bytes(request.into_body(), MAX_BODY).await.map_err(|_| StatusCode::BAD_REQUEST)?;
        if !bytes.is_empty() {
            body = Some(serde_json::from_slice(&bytes).map_err(|_| StatusCode::BAD_REQUEST)?);
        }
    }
    Ok((body, files))
}
