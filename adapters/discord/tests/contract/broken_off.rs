//! A reply that broke off while it was streamed goes, and appears whole when it is made again.

use std::time::Duration;

use azera_adapter::{Making, NOT_ANSWERED, Outbound, Platform, StreamEvent};
use azera_fake_discord::{FakeDiscord, Fault, Scope, World};
use azera_types::{ChatId, MessageId};

use crate::host::UNANSWERABLE;
use crate::posts::outbound;
use crate::{Running, fake, record, square, start, texts};

/// The beginning that people see. A model may say it again, and no more.
const BEGINNING: &str = "Half and";

/// A question that the engine of these tests leaves to the test, and the reply to it.
struct Question {
    channel: u64,
    id: u64,
    reply: Outbound,
}

impl Question {
    fn ask(fake: &FakeDiscord, channel: u64, who: u64, reply: &str) -> Self {
        let id = fake.world(|world| world.say(channel, who, &format!("Azera, {UNANSWERABLE}?")));
        let chat = ChatId::new(format!("discord:{channel}")).unwrap();
        let reply = outbound(&chat, MessageId::new(format!("discord:{id}~r0")).unwrap(), "Azera", reply);
        Self { channel, id, reply }
    }

    async fn stream(&self, bot: &Running, event: StreamEvent) {
        let making = Making {
            chat: &self.reply.chat,
            reply: &self.reply.id,
            persona: &self.reply.persona,
            persona_name: &self.reply.persona_name,
            asker: None,
            is_help: false,
        };
        bot.discord.streaming().unwrap().event(making, &event).await;
    }

    /// Begins the reply, and waits until people see it.
    async fn begin(&self, fake: &FakeDiscord, bot: &Running) {
        self.stream(bot, StreamEvent::Content { text: BEGINNING.to_owned() }).await;
        fake.wait("the beginning", |world| (self.shown(world) == [BEGINNING]).then_some(()));
    }

    async fn break_off(&self, bot: &Running) {
        self.stream(bot, StreamEvent::Error { message: "the answer could not be stored".to_owned() }).await;
    }

    /// Returns what people see of the reply.
    fn shown(&self, world: &World) -> Vec<String> {
        texts(world, self.channel, self.id).into_iter().filter(|text| text != NOT_ANSWERED).collect()
    }

    /// Returns how many notices say that there is no reply.
    fn notices(&self, world: &World) -> usize {
        texts(world, self.channel, self.id).iter().filter(|text| *text == NOT_ANSWERED).count()
    }

    fn is_shown_once(&self, fake: &FakeDiscord) {
        fake.world(|world| {
            assert_eq!(self.shown(world), [self.reply.text.as_str()]);
            let answers = world.answers(self.channel, self.id);
            let message = answers.iter().find(|message| message["content"] == *self.reply.text.as_str()).unwrap();
            assert!(message["components"].to_string().contains("Again"), "its buttons are there: {message}");
            assert!(world.violations.is_empty(), "{:#?}", world.violations);
        });
    }
}

/// Discord knows the nonce of the message that was deleted.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_broke_off_is_posted_again_within_minutes() {
    let (fake, folder, record) = (fake(), tempfile::tempdir().unwrap(), record());
    let (_, square, ann) = square(&fake);
    for (text, restarts) in [("Half and half.", false), (BEGINNING, false), ("Half and half.", true), (BEGINNING, true)]
    {
        let mut bot = start(&fake, folder.path(), &record).await;
        let question = Question::ask(&fake, square, ann, text);
        question.begin(&fake, &bot).await;
        question.break_off(&bot).await;
        fake.wait("the end of it", |world| question.shown(world).is_empty().then_some(()));
        if restarts {
            bot.stop().await;
            bot = start(&fake, folder.path(), &record).await;
        }
        bot.discord.deliver(&question.reply).await.unwrap();
        question.is_shown_once(&fake);
        // To deliver it again changes nothing.
        bot.discord.deliver(&question.reply).await.unwrap();
        question.is_shown_once(&fake);
        bot.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_is_shown_after_its_broken_beginning_is_removed() {
    let (fake, folder, record) = (fake(), tempfile::tempdir().unwrap(), record());
    let (_, square, ann) = square(&fake);
    let bot = start(&fake, folder.path(), &record).await;
    let question = Question::ask(&fake, square, ann, "Half and half.");
    question.begin(&fake, &bot).await;
    let path = format!("/channels/{square}/messages");
    fake.world(|world| world.order(Fault::limited("DELETE", &path, Scope::User, Duration::from_millis(200))));
    question.break_off(&bot).await;
    bot.discord.deliver(&question.reply).await.unwrap();
    question.is_shown_once(&fake);
    let removed =
        fake.world(|world| world.requests.iter().any(|request| request.method == "DELETE" && request.status == 204));
    assert!(removed, "what removes the beginning later removes the reply");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn people_are_told_once_that_a_reply_failed() {
    let (fake, folder, record) = (fake(), tempfile::tempdir().unwrap(), record());
    let (_, square, ann) = square(&fake);
    let bot = start(&fake, folder.path(), &record).await;
    let [begun, unbegun] = [(), ()].map(|()| Question::ask(&fake, square, ann, "Half and half."));
    begun.begin(&fake, &bot).await;
    for question in [&begun, &unbegun] {
        question.break_off(&bot).await;
        fake.wait("the notice", |world| (question.notices(world) == 1).then_some(()));
    }
    bot.stop().await;
    // A process that searches the channel for the reply takes no notice for its beginning.
    let bot = start(&fake, folder.path(), &record).await;
    for question in [&begun, &unbegun] {
        bot.discord.deliver(&question.reply).await.unwrap();
        question.is_shown_once(&fake);
        fake.world(|world| assert_eq!(question.notices(world), 1));
    }
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_told_of_a_withdrawn_reply_or_of_one_that_a_command_asked_for() {
    let (fake, folder, record) = (fake(), tempfile::tempdir().unwrap(), record());
    let (_, square, ann) = square(&fake);
    let bot = start(&fake, folder.path(), &record).await;
    let withdrawn = Question::ask(&fake, square, ann, "Half and half.");
    withdrawn.begin(&fake, &bot).await;
    withdrawn.stream(&bot, StreamEvent::Withdrawn).await;
    let mut again = Question::ask(&fake, square, ann, "Half and half.");
    again.reply.id = MessageId::new(format!("discord:{}~r1", again.id)).unwrap();
    again.break_off(&bot).await;
    // This waits for the removals.
    bot.stop().await;
    fake.world(|world| {
        assert!(withdrawn.shown(world).is_empty());
        assert_eq!([&withdrawn, &again].map(|question| question.notices(world)), [0, 0]);
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_beginning_that_cannot_be_removed_at_once_goes_later() {
    let (fake, folder, record) = (fake(), tempfile::tempdir().unwrap(), record());
    let (_, square, ann) = square(&fake);
    let bot = start(&fake, folder.path(), &record).await;
    let question = Question::ask(&fake, square, ann, "Half and half.");
    question.begin(&fake, &bot).await;
    let path = format!("/channels/{square}/messages");
    fake.world(|world| world.order(Fault::fails("DELETE", &path, 500)));
    question.stream(&bot, StreamEvent::Withdrawn).await;
    fake.wait("its end", |world| question.shown(world).is_empty().then_some(()));
    bot.stop().await;
}
