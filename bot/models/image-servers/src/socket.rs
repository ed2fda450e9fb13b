//! A WebSocket to a server, over TLS for `https`. It trusts the certificates that the HTTP client trusts.

use std::sync::Arc;

use reqwest::Url;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::http::header::AUTHORIZATION;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::config::Secret;

/// A connection, with TLS or without.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// The connection that messages come over.
pub(crate) type Socket = WebSocketStream<Box<dyn Stream>>;

/// Returns the certificates to trust; `None` if this build has no usable TLS.
pub(crate) fn trusted() -> Option<Arc<ClientConfig>> {
    trusting(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() })
}

fn trusting(roots: RootCertStore) -> Option<Arc<ClientConfig>> {
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let config = config.with_safe_default_protocol_versions().ok()?;
    Some(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

/// Opens a WebSocket at an `http` or `https` address; `None` if that is not possible.
pub(crate) async fn open(
    mut url: Url,
    key: Option<&Secret>,
    limits: WebSocketConfig,
    trusted: Option<Arc<ClientConfig>>,
) -> Option<Socket> {
    let is_encrypted = url.scheme() == "https";
    url.set_scheme(if is_encrypted { "wss" } else { "ws" }).ok()?;
    // An IPv6 address stands in brackets.
    let host = url.host_str()?.trim_matches(['[', ']']).to_owned();
    let tcp = TcpStream::connect((host.as_str(), url.port_or_known_default()?)).await.ok()?;
    tcp.set_nodelay(true).ok()?;
    let stream: Box<dyn Stream> = match is_encrypted {
        false => Box::new(tcp),
        true => Box::new(TlsConnector::from(trusted?).connect(ServerName::try_from(host).ok()?, tcp).await.ok()?),
    };
    let mut request = url.as_str().into_client_request().ok()?;
    if let Some(key) = key {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose())).ok()?;
        value.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, value);
    }
    client_async_with_config(request, stream, Some(limits)).await.ok().map(|(socket, _)| socket)
}

#[cfg(test)]
mod tests {
    use futures::{SinkExt, StreamExt};
    use rcgen::{CertifiedKey, generate_simple_self_signed};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::rustls::ServerConfig;
    use tokio_rustls::rustls::pki_types::PrivateKeyDer;
    use tokio_tungstenite::tungstenite::Message;
    use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};

    use super::*;

    /// Starts a server that says over TLS which key it was sent. Returns its address and the certificates to trust.
    #[allow(clippy::result_large_err, reason = "the handshake's types are the library's")]
    async fn server() -> (Url, RootCertStore) {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(cert.der().clone()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
        let acceptor = TlsAcceptor::from(Arc::new(config.with_single_cert(vec![cert.der().clone()], key).unwrap()));
        let listener = TcpListener::bind("localhost:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                // A client that does not trust it breaks off.
                let Ok(tls) = acceptor.accept(tcp).await else { continue };
                let mut sent = String::new();
                let note = |request: &Request, response: Response| -> Result<Response, ErrorResponse> {
                    let key = request.headers().get(AUTHORIZATION).map(|key| key.to_str().unwrap().to_owned());
                    sent = format!("{} {}", request.uri(), key.unwrap_or_default());
                    Ok(response)
                };
                let mut socket = tokio_tungstenite::accept_hdr_async(tls, note).await.unwrap();
                socket.send(Message::text(sent)).await.unwrap();
            }
        });
        (Url::parse(&format!("https://localhost:{port}/comfy/ws?clientId=a")).unwrap(), roots)
    }

    #[tokio::test]
    async fn a_socket_is_opened_over_tls_with_the_key() {
        let (url, roots) = server().await;
        let key = Secret::new("sk-hush");
        let limits = WebSocketConfig::default;
        let mut socket = open(url.clone(), Some(&key), limits(), trusting(roots)).await.unwrap();
        let said = socket.next().await.unwrap().unwrap();
        assert_eq!(said.into_text().unwrap().as_str(), "/comfy/ws?clientId=a Bearer sk-hush");
        assert!(open(url, Some(&key), limits(), trusted()).await.is_none(), "nobody vouches for it");
    }
}
