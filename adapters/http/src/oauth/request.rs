//! What a program asks for (RFC 6749 with PKCE, RFC 8707 and RFC 9207).

use schemars::JsonSchema;
use serde::Deserialize;
use url::Url;

use super::{OAuthError, Origin, Registered, SCOPES, USUAL};
use crate::accounts::{Caller, Scope};
use crate::problem::Problem;

/// The only method of PKCE.
const METHOD: &str = "S256";

/// Longest state of a request, in bytes. It is returned as it came.
const MAX_STATE_BYTES: usize = 2_048;

/// Characters of a challenge: a SHA-256 in base64url.
const CHALLENGE_CHARS: usize = 43;

/// The parameters of a request.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct Asked {
    /// Always `code`.
    #[serde(default)]
    pub(crate) response_type: String,
    /// The id of the client, from its registration.
    #[serde(default)]
    pub(crate) client_id: String,
    /// The address to which the person is sent back.
    #[serde(default)]
    pub(crate) redirect_uri: String,
    /// The challenge of PKCE.
    #[serde(default)]
    pub(crate) code_challenge: String,
    /// Always `S256`.
    #[serde(default)]
    pub(crate) code_challenge_method: String,
    /// The scopes, separated by spaces.
    #[serde(default)]
    pub(crate) scope: Option<String>,
    /// A text that is returned as it came.
    #[serde(default)]
    pub(crate) state: Option<String>,
    /// What the tokens are for.
    #[serde(default)]
    pub(crate) resource: Option<String>,
}

/// A request that may be shown to a person.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// The program.
    pub(crate) client: Registered,
    /// What it asks for, as far as the person may do that.
    pub(crate) scopes: Vec<Scope>,
}

impl Asked {
    /// Returns the program, if the person may be sent back to it. Without one, nobody is sent anywhere.
    pub(crate) fn client(&self) -> Result<Registered, Problem> {
        let client = Registered::parse(&self.client_id);
        let client = client.ok_or_else(|| Problem::invalid("The program that sent you here is not registered."))?;
        if !client.may_return_to(&self.redirect_uri) {
            return Err(Problem::invalid(
                "The program that sent you here wants you to return to an address that is not its own.",
            ));
        }
        if self.state.as_ref().is_some_and(|state| state.len() > MAX_STATE_BYTES) {
            return Err(Problem::invalid(format!("`state` has at most {MAX_STATE_BYTES} bytes.")));
        }
        Ok(client)
    }

    /// Checks everything else.
    pub(crate) fn wanted(&self, client: Registered, origin: &Origin, caller: &Caller) -> Result<Wanted, OAuthError> {
        if self.response_type != "code" {
            return Err(OAuthError::new("unsupported_response_type", "`response_type` must be `code`."));
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let is_challenge = self.code_challenge.len() == CHALLENGE_CHARS && self.code_challenge.chars().all(is_plain);
        if self.code_challenge_method != METHOD || !is_challenge {
            return Err(OAuthError::request("PKCE is required: `code_challenge` with `code_challenge_method=S256`."));
        }
        if self.resource.as_ref().is_some_and(|resource| *resource != origin.resource()) {
            let why = format!("Tokens are for {} alone.", origin.resource());
            return Err(OAuthError::new("invalid_target", why));
        }
        let scopes = scopes_in(self.scope.as_deref())?;
        Ok(Wanted { client, scopes: scopes.into_iter().filter(|scope| caller.scopes.contains(scope)).collect() })
    }

    /// Returns the address to which the person is sent back with an answer.
    pub(crate) fn answer(&self, origin: &Origin, answer: &[(&str, &str)]) -> Result<String, Problem> {
        let mut url = Url::parse(&self.redirect_uri).map_err(|error| Problem::internal(&error))?;
        {
            let mut query = url.query_pairs_mut();
            query.extend_pairs(answer);
            query.extend_pairs(self.state.iter().map(|state| ("state", state)));
            query.append_pair("iss", origin.issuer());
        }
        Ok(url.into())
    }
}

/// Returns the scopes of a list. Every token may use `/mcp`, so that is always among them.
pub(crate) fn scopes_in(list: Option<&str>) -> Result<Vec<Scope>, OAuthError> {
    let words: Vec<&str> = list.into_iter().flat_map(str::split_ascii_whitespace).collect();
    if words.is_empty() {
        return Ok(USUAL.to_vec());
    }
    let known = |word: &str| SCOPES.into_iter().find(|scope| scope.as_str() == word);
    if let Some(unknown) = words.iter().find(|word| known(word).is_none()) {
        return Err(OAuthError::new("invalid_scope", format!("There is no scope {unknown:?}.")));
    }
    let asked = |scope: &Scope| *scope == Scope::Mcp || words.contains(&scope.as_str());
    Ok(SCOPES.into_iter().filter(asked).collect())
}
