//! The routes of OAuth: metadata, registration, the page on which a person allows a program, tokens and their revocation.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Done;
use super::page::{HTML, SCRIPT};
use crate::accounts::{Caller, Scope};
use crate::endpoint::{Endpoint, Fields, Json, Need, Parameter, Params};
use crate::guard::Client;
use crate::oauth::{
    ACCESS_S, Asked, Code, Issued, OAuthError, Origin, Registered, Registration, SCOPES, TokenWish, USUAL, Wanted,
    in_words, joined, place_of, scopes_in,
};
use crate::problem::Problem;
use crate::secrets::{digest, id, same, token};
use crate::web::Shared;

/// Shortest and longest verifier of PKCE, in characters.
const VERIFIER_CHARS: std::ops::RangeInclusive<usize> = 43..=128;

/// How programs get tokens.
const GRANT_TYPES: [&str; 2] = ["authorization_code", "refresh_token"];

/// What a program asks a person for.
#[derive(Serialize, JsonSchema)]
struct Request {
    /// The name that the program gave itself.
    name: String,
    /// Where the person is sent back, in words.
    returns_to: String,
    /// What it asks for.
    scopes: Vec<Offer>,
    /// Why the program cannot have what it asks for, if so.
    refusal: Option<String>,
    /// The address with that refusal, for a click of the person.
    back: Option<String>,
}

/// A scope that a program asks for.
#[derive(Serialize, JsonSchema)]
struct Offer {
    scope: Scope,
    /// What it allows, in words.
    words: &'static str,
    /// Whether the person is asked to allow it by themselves.
    usual: bool,
    /// Whether the person cannot leave it out.
    fixed: bool,
}

/// What a person decided.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Decision {
    /// The parameters of the request, as they came.
    request: Asked,
    /// What the person allows; empty to allow nothing.
    scopes: Vec<Scope>,
}

/// Where the person goes now.
#[derive(Serialize, JsonSchema)]
struct Decided {
    /// The address of the program, with its answer.
    location: String,
}

/// What is protected (RFC 9728).
#[derive(Serialize, JsonSchema)]
struct ResourceMetadata {
    resource: String,
    authorization_servers: [String; 1],
    scopes_supported: [Scope; USUAL.len()],
    bearer_methods_supported: [&'static str; 1],
    resource_name: &'static str,
}

/// How programs ask for access (RFC 8414).
#[derive(Serialize, JsonSchema)]
struct ServerMetadata {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    registration_endpoint: String,
    revocation_endpoint: String,
    scopes_supported: [Scope; SCOPES.len()],
    response_types_supported: [&'static str; 1],
    response_modes_supported: [&'static str; 1],
    grant_types_supported: [&'static str; 2],
    token_endpoint_auth_methods_supported: [&'static str; 1],
    revocation_endpoint_auth_methods_supported: [&'static str; 1],
    code_challenge_methods_supported: [&'static str; 1],
    authorization_response_iss_parameter_supported: bool,
}

/// A registered program (RFC 7591).
#[derive(Serialize, JsonSchema)]
struct ClientInformation {
    client_id: String,
    client_name: String,
    redirect_uris: Vec<String>,
    grant_types: [&'static str; 2],
    response_types: [&'static str; 1],
    token_endpoint_auth_method: &'static str,
}

/// Tokens (RFC 6749).
#[derive(Serialize, JsonSchema)]
struct Tokens {
    /// The access token, for `/mcp` alone.
    access_token: String,
    /// Always `Bearer`.
    token_type: &'static str,
    /// Seconds for which the access token works.
    expires_in: i64,
    /// The refresh token. It works once.
    refresh_token: String,
    /// What the access token may do, separated by spaces.
    scope: String,
}

/// The parameters of the page.
const ASKED: &[Parameter] = &[
    Parameter { name: "response_type", help: "Always code.", required: false },
    Parameter { name: "client_id", help: "The id of the program.", required: false },
    Parameter { name: "redirect_uri", help: "The address to which the person is sent back.", required: false },
    Parameter { name: "code_challenge", help: "The challenge of PKCE.", required: false },
    Parameter { name: "code_challenge_method", help: "Always S256.", required: false },
    Parameter { name: "scope", help: "What the program asks for, separated by spaces.", required: false },
    Parameter { name: "state", help: "A text that is returned as it came.", required: false },
    Parameter { name: "resource", help: "What the tokens are for: the address of /mcp.", required: false },
];

/// The fields of a request for tokens.
const TOKEN: &[Parameter] = &[
    Parameter { name: "grant_type", help: "authorization_code or refresh_token.", required: true },
    Parameter { name: "client_id", help: "The id of the program.", required: true },
    Parameter { name: "code", help: "The code.", required: false },
    Parameter { name: "code_verifier", help: "The verifier of PKCE.", required: false },
    Parameter { name: "redirect_uri", help: "The address of the request.", required: false },
    Parameter { name: "refresh_token", help: "The refresh token.", required: false },
    Parameter { name: "scope", help: "Fewer scopes than the person allowed.", required: false },
    Parameter { name: "resource", help: "What the tokens are for.", required: false },
];

/// The fields of a revocation.
const REVOKED: &[Parameter] = &[
    Parameter { name: "token", help: "An access token or a refresh token.", required: true },
    Parameter { name: "client_id", help: "The id of the program.", required: true },
];

pub(super) fn endpoints() -> Vec<Endpoint> {
    let well_known = |path, summary| (Method::GET, path, Need::Public, summary);
    let resource_of = |(method, path, need, summary)| {
        Endpoint::new(method, path, need, summary, resource).answers::<ResourceMetadata>()
    };
    vec![
        resource_of(well_known(
            "/.well-known/oauth-protected-resource",
            "Tell which server gives tokens for /mcp (RFC 9728)",
        )),
        resource_of(well_known("/.well-known/oauth-protected-resource/mcp", "The same, at the address of its own")),
        Endpoint::new(
            Method::GET,
            "/.well-known/oauth-authorization-server",
            Need::Public,
            "Tell how programs ask people for access (RFC 8414)",
            server,
        )
        .answers::<ServerMetadata>(),
        Endpoint::new(Method::POST, "/oauth/register", Need::Public, "Register a program (RFC 7591)", register)
            .takes::<Registration>()
            .answers::<ClientInformation>()
            .also(&[(201, "It is registered.")]),
        Endpoint::new(
            Method::GET,
            "/oauth/authorize",
            Need::Public,
            "The page on which a person allows a program",
            page,
        )
        .asks(ASKED)
        .sends("text/html", "The page. It asks the person to log in first."),
        Endpoint::new(Method::GET, "/oauth.js", Need::Public, "That page's script", script)
            .sends("text/javascript", "The file."),
        Endpoint::new(Method::GET, "/api/oauth/request", Need::Session, "Tell what a program asks for", request)
            .asks(ASKED)
            .answers::<Request>(),
        Endpoint::new(Method::POST, "/api/oauth/decision", Need::Session, "Allow a program something, or not", decide)
            .takes::<Decision>()
            .answers::<Decided>(),
        Endpoint::new(Method::POST, "/oauth/token", Need::Public, "Get tokens for a code or a refresh token", tokens)
            .takes_fields(TOKEN)
            .answers::<Tokens>(),
        // A program that kept its tokens and not the metadata asks there. The Python SDK is one.
        Endpoint::new(Method::POST, "/token", Need::Public, "The same as /oauth/token", tokens)
            .takes_fields(TOKEN)
            .answers::<Tokens>(),
        Endpoint::new(Method::POST, "/oauth/revoke", Need::Public, "Give a token back (RFC 7009)", revoke)
            .takes_fields(REVOKED)
            .answers::<Done>(),
    ]
}

async fn resource(Extension(origin): Extension<Origin>) -> axum::Json<ResourceMetadata> {
    axum::Json(ResourceMetadata {
        resource: origin.resource(),
        authorization_servers: [origin.issuer().to_owned()],
        scopes_supported: USUAL,
        bearer_methods_supported: ["header"],
        resource_name: "Azera",
    })
}

async fn server(Extension(origin): Extension<Origin>) -> axum::Json<ServerMetadata> {
    axum::Json(ServerMetadata {
        issuer: origin.issuer().to_owned(),
        authorization_endpoint: origin.at("/oauth/authorize"),
        token_endpoint: origin.at("/oauth/token"),
        registration_endpoint: origin.at("/oauth/register"),
        revocation_endpoint: origin.at("/oauth/revoke"),
        scopes_supported: SCOPES,
        response_types_supported: ["code"],
        response_modes_supported: ["query"],
        grant_types_supported: GRANT_TYPES,
        token_endpoint_auth_methods_supported: ["none"],
        revocation_endpoint_auth_methods_supported: ["none"],
        code_challenge_methods_supported: ["S256"],
        authorization_response_iss_parameter_supported: true,
    })
}

async fn register(Json(registration): Json<Registration>) -> Result<Response, OAuthError> {
    let registered = Registered::of(&registration)?;
    let answer = ClientInformation {
        client_id: registered.id(),
        client_name: registered.name,
        redirect_uris: registered.addresses,
        grant_types: GRANT_TYPES,
        response_types: ["code"],
        token_endpoint_auth_method: "none",
    };
    Ok(unstored((StatusCode::CREATED, axum::Json(answer)).into_response()))
}

async fn page() -> Response {
    unstored(([(header::CONTENT_TYPE, HTML)], include_str!("../../page/oauth.html")).into_response())
}

async fn script() -> Response {
    let headers = [(header::CONTENT_TYPE, SCRIPT), (header::CACHE_CONTROL, "no-cache")];
    (headers, include_str!("../../page/oauth.js")).into_response()
}

async fn request(
    Extension(origin): Extension<Origin>,
    caller: Caller,
    Params(asked): Params<Asked>,
) -> Result<axum::Json<Request>, Problem> {
    let program = asked.client()?;
    let (name, returns_to) = (program.name.clone(), place_of(&asked.redirect_uri));
    let offer =
        |scope| Offer { scope, words: in_words(scope), usual: USUAL.contains(&scope), fixed: scope == Scope::Mcp };
    Ok(axum::Json(match asked.wanted(program, &origin, &caller) {
        Ok(Wanted { scopes, .. }) => {
            let scopes = scopes.into_iter().map(offer).collect();
            Request { name, returns_to, scopes, refusal: None, back: None }
        }
        Err(OAuthError::Refused { error, why }) => {
            let back = asked.answer(&origin, &[("error", error), ("error_description", &why)])?;
            Request { name, returns_to, scopes: Vec::new(), refusal: Some(why), back: Some(back) }
        }
        Err(OAuthError::Other(problem)) => return Err(problem),
    }))
}

async fn decide(
    State(shared): State<Arc<Shared>>,
    Extension(origin): Extension<Origin>,
    caller: Caller,
    Json(Decision { request, scopes }): Json<Decision>,
) -> Result<axum::Json<Decided>, Problem> {
    let program = request.client()?;
    let wanted = match request.wanted(program, &origin, &caller) {
        Ok(wanted) => wanted,
        Err(OAuthError::Refused { why, .. }) => return Err(Problem::invalid(why)),
        Err(OAuthError::Other(problem)) => return Err(problem),
    };
    // The person may allow less than the program asks for, and never more.
    let scopes: Vec<Scope> = wanted.scopes.into_iter().filter(|scope| scopes.contains(scope)).collect();
    if !scopes.contains(&Scope::Mcp) {
        let location = request.answer(&origin, &[("error", "access_denied")])?;
        return Ok(axum::Json(Decided { location }));
    }
    let code = token()?;
    let of = Code {
        account: caller.account.clone(),
        grant: id()?.simple().to_string(),
        client_id: request.client_id.clone(),
        name: wanted.client.name,
        redirect_uri: request.redirect_uri.clone(),
        challenge: request.code_challenge.clone(),
        scopes,
        resource: origin.resource(),
        made_at: shared.clock.now(),
        used: false,
    };
    let mut codes = shared.codes.hold().await;
    // What the person decided with may have ended since the request came.
    if !shared.is_current(&caller) {
        return Err(Problem::unauthorized());
    }
    codes.keep(&code, of);
    let location = request.answer(&origin, &[("code", &code)])?;
    Ok(axum::Json(Decided { location }))
}

async fn tokens(
    State(shared): State<Arc<Shared>>,
    Extension(client): Extension<Client>,
    fields: Fields,
) -> Result<Response, OAuthError> {
    let issued = match fields.required("grant_type")? {
        "authorization_code" => redeem(&shared, &fields).await,
        "refresh_token" => {
            let scopes = fields.optional("scope").map(|list| scopes_in(Some(list))).transpose()?;
            let wish =
                TokenWish { client_id: fields.required("client_id")?, resource: fields.optional("resource"), scopes };
            shared.accounts.refresh(fields.required("refresh_token")?, wish).await
        }
        _ => {
            let why = "`grant_type` must be authorization_code or refresh_token.";
            return Err(OAuthError::new("unsupported_grant_type", why));
        }
    };
    let Issued { access, refresh, scopes } = match issued {
        Ok(issued) => issued,
        Err(error) => {
            shared.failures.take(&client.bucket("token"), shared.clock.now()).map_err(Problem::too_many)?;
            return Err(error);
        }
    };
    let answer = Tokens {
        access_token: access,
        token_type: "Bearer",
        expires_in: ACCESS_S,
        refresh_token: refresh,
        scope: joined(&scopes),
    };
    Ok(unstored(axum::Json(answer).into_response()))
}

/// Turns a code into tokens. Whoever uses a code again ends what the first use got.
async fn redeem(shared: &Shared, fields: &Fields) -> Result<Issued, OAuthError> {
    let (code, verifier) = (fields.required("code")?, fields.required("code_verifier")?);
    let (client_id, redirect_uri) = (fields.required("client_id")?, fields.required("redirect_uri")?);
    let mut codes = shared.codes.hold().await;
    let code = codes.take(code).ok_or_else(OAuthError::grant)?;
    if code.used {
        tracing::warn!("a code was used twice, so the access of its program was revoked");
        // It may have got nothing.
        shared.accounts.revoke_grant(&code.account, &code.grant).await.ok();
        return Err(OAuthError::grant());
    }
    // A digest is the SHA-256 in base64url, which PKCE calls S256.
    let is_right = !code.is_over(shared.clock.now())
        && code.client_id == client_id
        && code.redirect_uri == redirect_uri
        && VERIFIER_CHARS.contains(&verifier.len())
        && same(&digest(verifier), &code.challenge);
    if !is_right {
        return Err(OAuthError::grant());
    }
    if fields.optional("resource").is_some_and(|resource| resource != code.resource) {
        return Err(OAuthError::new("invalid_target", format!("This code is for {} alone.", code.resource)));
    }
    Ok(shared.accounts.grant(code).await?)
}

async fn revoke(State(shared): State<Arc<Shared>>, fields: Fields) -> Result<Response, OAuthError> {
    shared.accounts.give_back(fields.required("token")?, fields.required("client_id")?).await?;
    Ok(unstored(axum::Json(Done { status: "revoked" }).into_response()))
}

/// Marks an answer that nobody may keep.
fn unstored(mut response: Response) -> Response {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
