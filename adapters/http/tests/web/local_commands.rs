//! What commands on this machine ask for, beside a running Azera.

use std::path::Path;

use async_trait::async_trait;
use azera_adapter_http::{
    AccountLinkAsked, AccountLinkStep, CommandRefused, CommandReport, FileToImport, ImportProgress, ImportToUndo,
    ImportsAsked, LocalCommands, LocalError, ProgressAsked, ProjectAsked,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::World;
use crate::engine::Engine;

fn report(words: String) -> CommandReport {
    CommandReport { report: json!({"words": words}), words, interrupted: false }
}

#[async_trait]
impl LocalCommands for Engine {
    async fn project_context(&self, asked: ProjectAsked) -> Result<String, CommandRefused> {
        if asked.persona.is_some() {
            return Err(CommandRefused("there is no persona nobody".into()));
        }
        Ok(format!("{} of {} in {} tokens", asked.project, asked.name, asked.tokens))
    }

    fn take_in_transcripts(&self) {
        self.fail();
    }

    async fn import(&self, file: FileToImport, _: CancellationToken) -> Result<CommandReport, CommandRefused> {
        Ok(report(format!("{} for {}", file.path.display(), file.name)))
    }

    fn import_progress(&self, asked: &ProgressAsked) -> ImportProgress {
        if asked.name == "Ann" && asked.path == Path::new("/a.json") && !asked.dry_run {
            ImportProgress { done: 3, total: 7 }
        } else {
            ImportProgress::default()
        }
    }

    async fn imports(&self, asked: ImportsAsked) -> Result<CommandReport, CommandRefused> {
        Ok(report(format!("of {}", asked.name)))
    }

    async fn undo_import(&self, import: ImportToUndo) -> Result<CommandReport, CommandRefused> {
        Ok(report(format!("{} of {}", import.id, import.name)))
    }

    async fn link_accounts(&self, asked: AccountLinkAsked) -> Result<CommandReport, CommandRefused> {
        match asked.step {
            AccountLinkStep::Code(code) => Ok(report(format!("{code} of {}", asked.name))),
            AccountLinkStep::Remove(other) => Ok(report(format!("{} without {other}", asked.name))),
            _ => Err(CommandRefused("there is no link to confirm".into())),
        }
    }
}

const CONTEXT: &str = "/api/local/project-context";

fn asked(persona: Option<&str>) -> Value {
    json!({"name": "Ann", "persona": persona, "project": "tower", "tokens": 90})
}

/// A hook works on a machine on which nobody made an account.
#[tokio::test]
async fn commands_on_this_machine_need_no_owner() {
    let world = World::start().await;
    let local = world.local();
    assert!(local.setup.is_some() && local.is_here(), "nobody owns it yet");
    let call = |path: &'static str, body: Value| {
        let local = local.clone();
        async move { tokio::task::spawn_blocking(move || local.call("POST", path, Some(&body))).await.unwrap() }
    };
    assert_eq!(call(CONTEXT, asked(None)).await.unwrap(), json!({"text": "tower of Ann in 90 tokens"}));
    let refused = call(CONTEXT, asked(Some("nobody"))).await.unwrap_err();
    assert!(matches!(&refused, LocalError::Refused(why) if why == "there is no persona nobody"), "{refused}");
    assert!(call(CONTEXT, json!({"name": "Ann"})).await.is_err(), "a question without a project");
    assert_eq!(world.client().send("GET", "/ready", None).await.status, 200);
    assert_eq!(call("/api/local/transcripts", json!({})).await.unwrap(), json!({"status": "begun"}));
    assert_eq!(world.client().send("GET", "/ready", None).await.status, 503, "the transcripts were asked for");
    let file = json!({"name": "Ann", "persona": null, "project": null, "path": "/a.json", "format": null, "me": null,
        "dry_run": true});
    assert_eq!(call("/api/local/imports", file).await.unwrap()["words"], "/a.json for Ann");
    for (name, path, told) in [("Ann", "/a.json", (3, 7)), ("Ann", "/b.json", (0, 0)), ("Ben", "/a.json", (0, 0))] {
        let asked = json!({"name": name, "path": path, "dry_run": false});
        let told = json!({"done": told.0, "total": told.1});
        assert_eq!(call("/api/local/imports/progress", asked).await.unwrap(), told);
    }
    assert_eq!(call("/api/local/imports/list", json!({"name": "Ann"})).await.unwrap()["words"], "of Ann");
    let undo = json!({"name": "Ann", "id": "3f2a", "quotes": false});
    assert_eq!(call("/api/local/imports/undo", undo).await.unwrap()["words"], "3f2a of Ann");
    for (step, told) in [(json!({"code": "K7M2"}), "K7M2 of Ann"), (json!({"remove": "ben"}), "Ann without ben")] {
        let asked = json!({"name": "Ann", "step": step});
        assert_eq!(call("/api/local/links", asked).await.unwrap()["words"], told);
    }
    let refused = call("/api/local/links", json!({"name": "Ann", "step": "confirm"})).await.unwrap_err();
    assert!(matches!(&refused, LocalError::Refused(why) if why == "there is no link to confirm"), "{refused}");
    world.stop().await;
}

/// No account opens them, and neither does the key from elsewhere.
#[tokio::test]
async fn nobody_else_reads_or_imports_for_people_of_the_terminal() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    owner.send("POST", CONTEXT, Some(asked(None))).await.is(403, "local");
    world.client().send("POST", CONTEXT, Some(asked(None))).await.is(401, "unauthorized");
    let key = format!("Bearer {}", world.local().key);
    let body = asked(None).to_string();
    let json = ("Content-Type", "application/json");
    let here = world.client().send_with("POST", CONTEXT, &[json, ("Authorization", &key)], &body).await;
    assert_eq!(here.status, 200, "{}", here.body);
    for elsewhere in [("X-Forwarded-For", "203.0.113.9"), ("Host", "azera.example.org")] {
        let answer =
            world.client().send_with("POST", CONTEXT, &[json, ("Authorization", &key), elsewhere], &body).await;
        answer.is(401, "unauthorized");
    }
    let wrong = world.client().send_with("POST", CONTEXT, &[json, ("Authorization", "Bearer azl_wrong")], &body).await;
    wrong.is(401, "unauthorized");
    // Nor do they link anybody with an account of their own.
    let link = json!({"name": "Ann", "step": {"code": "K7M2"}});
    owner.send("POST", "/api/local/links", Some(link.clone())).await.is(403, "local");
    world.client().send("POST", "/api/local/links", Some(link)).await.is(401, "unauthorized");
    // The key reads nothing of an account.
    for path in ["/api/chats", "/api/memories/known", "/api/accounts"] {
        let answer = world.client().send_with("GET", path, &[("Authorization", &key)], "").await;
        assert_eq!(answer.status, 403, "{path}: {}", answer.body);
    }
    world.stop().await;
}
