//! Every declared command has code that runs it.

use std::sync::Arc;

use async_trait::async_trait;
use azera_adapter::{Access, CommandLine, Host, Outbound, Platform, PlatformError};
use azera_engine::COMMANDS;
use azera_types::{ChatId, MessageId, PersonId, Place, PlatformId, ReadableScopes, Text, Timestamp};

use crate::findings::{ANN, DM_ANN, Scene};
use crate::test_engine::{chat, person};
use crate::watch::WatchedPlatform;

/// The platform of the worlds, on which everybody is the operator: no command is refused before it is dispatched.
struct OperatedPlatform(Arc<WatchedPlatform>);

#[async_trait]
impl Platform for OperatedPlatform {
    fn id(&self) -> &PlatformId {
        self.0.id()
    }

    async fn place(&self, chat: &ChatId, asker: &PersonId) -> Result<Option<Place>, PlatformError> {
        self.0.place(chat, asker).await
    }

    async fn readable_scopes(&self, person: &PersonId) -> Result<ReadableScopes, PlatformError> {
        self.0.readable_scopes(person).await
    }

    async fn access(&self, _chat: &ChatId, _person: &PersonId) -> Result<Access, PlatformError> {
        Ok(Access::Operator)
    }

    async fn deliver(&self, outbound: &Outbound) -> Result<(), PlatformError> {
        self.0.deliver(outbound).await
    }

    async fn show_again(&self, outbound: &Outbound) -> Result<(), PlatformError> {
        self.0.show_again(outbound).await
    }

    async fn retract(&self, chat: &ChatId, reply: &MessageId, at: Timestamp) -> Result<(), PlatformError> {
        self.0.retract(chat, reply, at).await
    }
}

#[tokio::test]
async fn every_declared_command_is_dispatched_and_only_quit_leaves() {
    let scene = Scene::open(false, false).await;
    scene.engine.azera.attach(Arc::new(OperatedPlatform(scene.engine.platform.clone())));
    for command in COMMANDS {
        let text = Text::new(format!("/{}", command.name));
        let line = CommandLine {
            chat: chat(DM_ANN),
            person: person(ANN),
            name: "Ann".to_owned(),
            text,
            about: None,
            picture: None,
        };
        let answer = scene.engine.azera.command(scene.engine.platform.id(), line).await;
        let answer = answer.unwrap_or_else(|error| panic!("/{}: {error}", command.name));
        assert_eq!(answer.leave, command.name == "quit", "/{}", command.name);
    }
}
