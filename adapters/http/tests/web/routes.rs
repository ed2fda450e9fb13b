//! Which key may use which route. A new route stands here, so that nobody opens one by mistake.

use std::collections::BTreeMap;

use serde_json::json;

use crate::isolation::later;
use crate::{World, program};

/// Every scope of a key.
const SCOPES: [&str; 6] = ["chat", "memory:read", "memory:write", "admin", "mcp", "vault"];

/// The routes by what they need: `all` is everybody, `none` is no key. Requests of this machine see the measurements.
const ROUTES: &str = "
all: GET /.well-known/oauth-authorization-server, GET /.well-known/oauth-protected-resource,
    GET /.well-known/oauth-protected-resource/mcp, GET /oauth.js, GET /oauth/authorize, POST /oauth/register, POST /oauth/revoke,
    POST /oauth/token, POST /token, GET /, GET /api/docs, GET /assets/{file}, GET /api/session, GET /docs.js, GET /health, GET /markdown.js, GET /metrics, GET /page.css, GET /page.js,
    GET /ready, POST /api/local/proof, POST /api/join, POST /api/login, POST /api/setup
none: DELETE /api/grants/{id}, DELETE /api/local/grants/{id}, GET /api/grants, GET /api/local/grants,
    GET /api/oauth/request, POST /api/oauth/decision, DELETE /api/account, DELETE /api/keys/{id}, DELETE /api/local/keys/{id}, GET /api/keys, GET /api/local/keys,
    POST /api/local/imports, POST /api/local/imports/list, POST /api/local/imports/progress, POST /api/local/imports/undo, POST /api/local/links, POST /api/local/project-context,
    POST /api/local/transcripts, POST /api/keys, POST /api/local/keys, POST /api/logout, PUT /api/password
chat: DELETE /api/chats/{id}, DELETE /api/groups/{id}, DELETE /api/images/{filename}, DELETE /api/images/{filename}/pin, DELETE /api/tags/{id}, GET /api/chats,
    GET /api/events,
    GET /api/chats/search, GET /api/chats/{id}, GET /api/groups, GET /api/history/{session_id}, GET /api/images,
    GET /api/images/models, GET /api/images/references/{filename}, GET /api/images/waiting, GET /api/images/waiting/{number}, GET /api/images/{filename}, GET /api/images/{filename}/thumbnail, GET /api/models,
    GET /api/personas, GET /api/personas/template, GET /api/personas/{id}, GET /api/settings, GET /api/status, GET /api/tags, GET /api/tts/status,
    GET /v1/models, GET /v1/models/{id}, POST /api/chat, POST /api/chat/stream,
    POST /api/chats, POST /api/chats/{id}/voice, POST /api/clear, POST /api/groups, POST /api/images/cancel, POST /api/images/generate, POST /api/images/upload-reference, POST /api/images/{filename}/upscale,
    POST /api/status/mood, POST /api/tags, POST /api/tts/synthesize,
    POST /v1/chat/completions, PUT /api/chats/{id}, PUT /api/groups/{id}, PUT /api/images/{filename}/pin, PUT /api/settings/editor, PUT /api/settings/ui,
    PUT /api/tags/{id}
memory:read: GET /api/memories/graph, GET /api/memories/known, GET /api/memories/{id}, GET /api/dreams, GET /api/dreams/search, GET /api/journal, GET /api/journal/search, POST /api/search
memory:write: PUT /api/memories/known/{id}, POST /api/dreams/import, POST /api/journal/import, POST /api/journal/trigger, POST /api/memories
mcp: POST /mcp
admin: DELETE /api/accounts/{id}, DELETE /api/models/{name}, DELETE /api/personas/{id}, DELETE /api/voice-samples/{filename},
    GET /api/accounts, GET /api/backups, GET /api/logs, GET /api/places, GET /api/voice-samples, POST /api/backups,
    POST /api/backups/{name}/verify, GET /api/personas/{id}/versions, GET /api/voice-samples/{filename}, POST /api/invitations,
    POST /api/models/pull, POST /api/personas, POST /api/personas/import, POST /api/voice-samples/upload,
    POST /api/token/rotate, PUT /api/personas/{id}, PUT /api/places/{id}
chat+memory:read+memory:write+admin+mcp+vault: POST /api/token
";

fn wanted() -> BTreeMap<String, String> {
    let mut wanted = BTreeMap::new();
    let mut need = String::new();
    for line in ROUTES.lines().filter(|line| !line.is_empty()) {
        let routes = match line.split_once(": ") {
            Some((of, routes)) if !line.starts_with(' ') => {
                need = of.to_owned();
                routes
            }
            _ => line,
        };
        for route in routes.split(',').map(str::trim).filter(|route| !route.is_empty()) {
            assert!(wanted.insert(route.to_owned(), need.clone()).is_none(), "{route} stands here twice");
        }
    }
    wanted
}

#[tokio::test]
async fn each_route_needs_what_stands_here() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let mut keys = Vec::new();
    for scope in SCOPES {
        keys.push((scope, program(&mut owner, &[scope]).await.0));
    }
    let document = owner.send("GET", "/api/openapi.json", None).await.json();
    let mut found = BTreeMap::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let method = method.to_uppercase();
            let concrete = ["{id}", "{name}", "{filename}", "{session_id}"]
                .iter()
                .fold(path.clone(), |path, part| path.replace(part, "x"));
            world.clock.advance_to(later(&world, 1));
            let anybody = world.client().send(&method, &concrete, Some(json!({}))).await.status;
            let mut may = Vec::new();
            for (scope, key) in &mut keys {
                if !matches!(key.send(&method, &concrete, Some(json!({}))).await.status, 401 | 403) {
                    may.push(*scope);
                }
            }
            let need = match may.as_slice() {
                [] => "none".to_owned(),
                all if all.len() == SCOPES.len() && anybody != 401 => "all".to_owned(),
                scopes => scopes.join("+"),
            };
            assert!(need == "all" || anybody == 401, "{method} {path} answered somebody unknown with {anybody}");
            found.insert(format!("{method} {path}"), need);
        }
    }
    assert_eq!(found, wanted());
    world.stop().await;
}
