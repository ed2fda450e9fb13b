//! Captions of a call in a thread: whose words stand there, who may read them, and that they go when they are forgotten.

use azera_adapter::{CallWish, CaptionStatus, Platform as _, VoiceError};
use azera_adapter_discord::CallWaits;
use azera_fake_discord::{BOT, Bits, Invoked, Mode, Network, Overwrite};
use azera_types::ChatId;
use serde_json::json;

use crate::consent::SOON;
use crate::engine::since;
use crate::interruptions::{FAILS, QUESTION};
use crate::{ANSWER, Room, check, in_own_process};

impl Room {
    fn text_channel(&self, name: &str) -> u64 {
        self.fake.world(|world| {
            let guild = world.channels[&self.channel].guild.expect("a channel of a server");
            world.channel(guild, name, Vec::new())
        })
    }

    fn captions(&self, place: u64, person: usize, wish: CallWish) -> Result<Option<CaptionStatus>, VoiceError> {
        let chat = ChatId::new(format!("discord:{place}")).expect("an id");
        self.runtime.block_on(self.channels().captions(&chat, &self.person(person), wish))
    }

    /// Turns captions on, and returns their thread.
    fn turn_on(&self, place: u64) -> u64 {
        let status = self.until("the bot to know the channel", || self.captions(place, 0, CallWish::On).ok());
        let place = status.expect("captions").place;
        place.trim_matches(['<', '#', '>']).parse().expect("an id")
    }

    /// Waits until the thread shows something, and returns all of it.
    #[track_caller]
    fn shown(&self, thread: u64, words: &str) -> String {
        self.fake.wait(words, |world| {
            let texts: Vec<&str> = world.bots_messages(thread).iter().filter_map(|it| it["content"].as_str()).collect();
            let text = texts.join("\n");
            text.to_lowercase().contains(&words.to_lowercase()).then_some(text)
        })
    }

    /// Presses the button below the question about captions, and returns it.
    fn agree(&self, person: usize) -> (u64, String) {
        let (message, custom_id) = self.fake.wait("the question", |world| {
            world.bots_messages(self.channel).into_iter().find_map(|message| {
                let buttons = message["components"][0]["components"].as_array()?;
                let button = buttons.iter().find(|button| button["label"] == "Hear me and show my words")?;
                let who = format!("<@{}>", self.people[person]);
                message["content"].as_str().filter(|text| text.contains(&who))?;
                Some((message["id"].as_str()?.parse::<u64>().ok()?, button["custom_id"].as_str()?.to_owned()))
            })
        });
        self.press_again(person, (message, custom_id.clone()));
        (message, custom_id)
    }

    fn press_again(&self, person: usize, (message, custom_id): (u64, String)) {
        let who = self.people[person];
        let pressed = self.fake.world(|world| world.invoke(self.channel, who, Invoked::Button { message, custom_id }));
        self.fake.wait("the answer to the button", |world| world.interaction(pressed).answer.message.clone());
    }
}

#[test]
fn captions_show_the_words_of_those_who_agreed() {
    in_own_process("captions::captions_show_the_words_of_those_who_agreed", |root| {
        let room = Room::open(&root, &["Ann", "Robert"], vec![Mode::Aes256Gcm], ANSWER);
        room.press(0, "Hear me");
        room.press(1, "Hear me");
        room.say(0, "Robert, my password is banana.", Network::default());
        room.said(1);
        let thread = room.turn_on(room.text_channel("square"));
        check("captions are on", &room.hear(0));
        room.shown(thread, "Ann turned them on");
        let announced = format!("<@{}> Ann turned on captions", room.people[1]);
        room.fake.wait("the announcement", |world| {
            let told = |text: &str| text.contains(&announced) && text.contains(&format!("<#{thread}>"));
            world.bots_messages(room.channel).iter().any(|it| it["content"].as_str().is_some_and(told)).then_some(())
        });
        // Robert agreed to be heard, but not to captions.
        let decoded = room.counts()[1];
        room.say(1, "Ann, I tell you something private.", Network::default());
        assert_eq!(room.counts()[1], decoded, "nothing of it is decoded");
        let spoken = room.spoken();
        room.say(0, "Azera, when does the last ferry leave today?", Network::default());
        check(&ANSWER.concat(), &room.hear(spoken));
        let text = room.shown(thread, &format!("**Azera:** {}", ANSWER.concat()));
        check("when does the last ferry leave today", &text);
        assert!(text.contains("**Ann:**") && !text.contains("banana") && !text.contains("private"), "{text}");
        // What was said before is not used while they run.
        let (before, _) = room.engine.kept().said[0].clone();
        let (asked, place) = room.engine.kept().said[1].clone();
        assert!(since(&place) > before.at && since(&place) <= asked.at);
        room.agree(1);
        room.pause();
        room.say(1, "Ann, I was at the market yesterday.", Network::default());
        check("I was at the market yesterday", &room.said(3));
        room.shown(thread, "**Robert:**");
        // Somebody who comes later is asked, too.
        let cid = room.fake.world(|world| {
            let cid = world.user("Cid");
            world.invite(world.channels[&room.channel].guild.expect("a channel of a server"), cid);
            world.join_voice(room.channel, cid);
            cid
        });
        let asked_too = format!("<@{cid}> Ann turned on captions");
        room.fake.wait("the question to Cid", |world| {
            let texts = world.bots_messages(room.channel);
            texts.iter().any(|it| it["content"].as_str().is_some_and(|text| text.contains(&asked_too))).then_some(())
        });
        room.fake.world(|world| world.leave_voice(cid));
        // What is forgotten goes, and nothing else.
        room.engine.kept().forgotten.push(asked.id.clone());
        room.runtime.block_on(room.channels().withdraw(&[(asked.chat, asked.id)]));
        let text = room.fake.wait("the caption to go", |world| {
            let messages = world.bots_messages(thread);
            let text: Vec<&str> = messages.iter().filter_map(|it| it["content"].as_str()).collect();
            let text = text.join("\n");
            (!text.contains("**Ann:**")).then_some(text)
        });
        assert!(text.contains("**Azera:**") && text.contains("**Robert:**"), "{text}");
        // When they end, everybody who agreed to be heard is heard again.
        assert_eq!(room.captions(room.channel, 1, CallWish::Off), Ok(None));
        room.shown(thread, "turned the captions off");
        room.say(1, "Ann, the market was very loud.", Network::default());
        check("the market was very loud", &room.said(4));
        room.runtime.block_on(room.discord.leave());
        let text = room.shown(thread, "turned the captions off");
        assert!(!text.contains("loud"), "{text}");
    });
}

#[test]
fn who_agrees_to_captions_alone_is_heard_no_longer_than_they_run() {
    in_own_process("captions::who_agrees_to_captions_alone_is_heard_no_longer_than_they_run", |root| {
        let room = Room::open(&root, &["Ann", "Robert"], vec![Mode::Aes256Gcm], ANSWER);
        room.press(0, "Hear me");
        room.press(1, "No");
        // Robert may not write in the hall.
        let hall = room.fake.world(|world| {
            let guild = world.channels[&room.channel].guild.expect("a channel of a server");
            let mute = Overwrite { id: room.people[1], user: true, allow: Bits::VIEW, deny: Bits::SEND };
            world.channel(guild, "hall", vec![mute])
        });
        room.until("the bot to know the hall", || {
            let refused = room.captions(hall, 1, CallWish::On).err();
            matches!(&refused, Some(VoiceError::Unavailable(why)) if why.starts_with("You may not")).then_some(())
        });
        let square = room.text_channel("square");
        let thread = room.turn_on(square);
        let button = room.agree(1);
        room.say(1, "Ann, I was at the market yesterday.", Network::default());
        check("I was at the market yesterday", &room.said(1));
        room.shown(thread, "**Robert:**");
        // He writes in the text chat of another voice channel, and agrees to what runs where he is.
        let cellar = room.fake.world(|world| {
            let guild = world.channels[&room.channel].guild.expect("a channel of a server");
            world.voice_channel(guild, "cellar")
        });
        let status = room
            .until("the bot to know the channel", || room.captions(cellar, 1, CallWish::Agree(None)).ok().flatten());
        assert!(status.shows_yours);
        let here = ChatId::new(format!("discord:voice:{}", room.channel)).expect("an id");
        assert_eq!(room.engine.kept().asked, [here].into());
        // What he decided for other times still counts.
        assert_eq!(room.engine.kept().consent[&room.person(1)], Some(false));
        assert_eq!(room.captions(room.channel, 0, CallWish::Off), Ok(None));
        room.press_again(1, button);
        assert_eq!(room.engine.kept().captioned, [Ok(()), Err(VoiceError::CaptionsEnded)]);
        let decoded = room.counts()[1];
        room.say(1, "Ann, I tell you something private.", Network::default());
        assert_eq!(room.counts()[1], decoded, "nothing of it is decoded");
    });
}

#[test]
fn captions_that_end_while_the_record_cannot_be_read_cost_nobody_their_consent() {
    in_own_process("captions::captions_that_end_while_the_record_cannot_be_read_cost_nobody_their_consent", |root| {
        let room = Room::open(&root, &["Ann", "Robert"], vec![Mode::Aes256Gcm], ANSWER);
        room.discord.set_call_waits(CallWaits { reread: SOON, ..CallWaits::default() });
        room.press(0, "Hear me");
        room.press(1, "Hear me");
        room.turn_on(room.text_channel("square"));
        room.engine.kept().unreadable = Some(room.person(1));
        assert_eq!(room.captions(room.channel, 0, CallWish::Off), Ok(None));
        assert!(room.engine.kept().unread > 0);
        room.engine.kept().unreadable = None;
        room.is_heard_at_last(1);
    });
}

#[test]
fn a_question_is_missing_in_captions_and_told_to_fail_if_its_consent_cannot_be_read() {
    in_own_process(
        "captions::a_question_is_missing_in_captions_and_told_to_fail_if_its_consent_cannot_be_read",
        |root| {
            let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
            room.press(0, "Hear me");
            let thread = room.turn_on(room.text_channel("square"));
            room.hear(0);
            room.engine.kept().unreadable = Some(room.person(0));
            room.say(0, QUESTION, Network::default());
            room.told(FAILS, 1);
            room.engine.kept().unreadable = None;
            room.say(0, "I was at the market yesterday.", Network::default());
            check("I was at the market yesterday", &room.said(1));
            let text = room.shown(thread, "some captions are missing");
            check("I was at the market yesterday", &text);
        },
    );
}

#[test]
fn captions_do_not_begin_twice_in_a_minute() {
    in_own_process("captions::captions_do_not_begin_twice_in_a_minute", |root| {
        let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        let square = room.text_channel("square");
        room.turn_on(square);
        assert_eq!(room.captions(room.channel, 0, CallWish::Off), Ok(None));
        let too_soon = room.captions(square, 0, CallWish::On).err();
        assert!(matches!(&too_soon, Some(VoiceError::Unavailable(why)) if why.contains("minute")), "{too_soon:?}");
    });
}

#[test]
fn captions_of_what_the_record_does_not_know_go_at_the_next_start() {
    in_own_process("captions::captions_of_what_the_record_does_not_know_go_at_the_next_start", |root| {
        let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        room.press(0, "Hear me");
        let thread = room.turn_on(room.text_channel("square"));
        room.hear(0);
        let spoken = room.spoken();
        room.say(0, "Azera, when does the last ferry leave today?", Network::default());
        room.hear(spoken);
        room.shown(thread, &format!("**Azera:** {}", ANSWER.concat()));
        room.runtime.block_on(room.discord.leave());
        room.shown(thread, "The call is over");
        // The record forgets it without a word to the bot.
        let engine = room.engine_of_another_start();
        let asked = room.engine.kept().said[0].clone();
        engine.kept().forgotten.push(asked.0.id.clone());
        engine.kept().said.push(asked);
        room.start_again(&root, engine);
        let text = room.fake.wait("the caption to go", |world| {
            let messages = world.bots_messages(thread);
            let text: Vec<&str> = messages.iter().filter_map(|it| it["content"].as_str()).collect();
            let text = text.join("\n");
            (!text.contains("**Ann:**")).then_some(text)
        });
        assert!(text.contains("**Azera:**"), "{text}");
    });
}

#[test]
fn captions_can_stand_in_the_chat_of_the_voice_channel_and_are_forgotten_from_their_menu() {
    in_own_process(
        "captions::captions_can_stand_in_the_chat_of_the_voice_channel_and_are_forgotten_from_their_menu",
        |root| {
            let room = Room::open(&root, &["Ann", "Robert"], vec![Mode::Aes256Gcm], ANSWER);
            room.press(0, "Hear me");
            assert_eq!(room.turn_on(room.channel), room.channel);
            room.hear(0);
            room.agree(1);
            room.say(0, "Robert, I was at the market yesterday.", Network::default());
            check("I was at the market yesterday", &room.said(1));
            room.shown(room.channel, "**Ann:**");
            let caption = room.fake.world(|world| {
                let shown = world.bots_messages(room.channel).into_iter();
                let mut captions =
                    shown.filter(|it| it["content"].as_str().is_some_and(|text| text.starts_with("**Ann")));
                captions.next()?["id"].as_str()?.parse::<u64>().ok()
            });
            let forget = |person: usize| {
                let target = Some(caption.expect("a caption"));
                let what = Invoked::Command { name: "Forget this".into(), kind: 3, options: json!([]), target };
                let chosen = room.fake.world(|world| world.invoke(room.channel, room.people[person], what));
                room.fake.wait("the answer", |world| {
                    Some(world.interaction(chosen).answer.message.as_ref()?["content"].as_str()?.to_owned())
                })
            };
            assert!(forget(1).starts_with("Nothing in this caption is yours"));
            assert!(room.engine.kept().forgotten.is_empty());
            assert!(forget(0).starts_with("Forgotten out of this caption: 1."));
            let kept = room.engine.kept();
            assert_eq!(kept.forgotten, [kept.said[0].0.id.clone()]);
        },
    );
}

#[test]
fn a_caption_that_a_crash_left_out_of_the_log_is_found_at_the_next_start() {
    in_own_process("captions::a_caption_that_a_crash_left_out_of_the_log_is_found_at_the_next_start", |root| {
        let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        room.press(0, "Hear me");
        let thread = room.turn_on(room.text_channel("square"));
        room.hear(0);
        room.say(0, "I was at the market yesterday.", Network::default());
        room.said(1);
        room.shown(thread, "**Ann:**");
        room.runtime.block_on(room.discord.leave());
        room.shown(thread, "The call is over");
        // As a crash leaves it after the post: an intent, and no entry in the log.
        let log = room.folder.path().join("discord-captions");
        let asked = room.engine.kept().said[0].clone();
        std::fs::remove_file(log.join(format!("{}.jsonl", room.channel))).expect("the log");
        let intent = json!([{
            "voice": room.channel.to_string(), "thread": thread.to_string(), "nonce": "1", "after": thread.to_string(),
            "lines": [asked.0.id],
        }]);
        let next = log.join("next");
        std::fs::create_dir_all(&next).expect("a folder");
        let file = next.join(format!("{thread}.json"));
        std::fs::write(&file, intent.to_string()).expect("a file");
        let engine = room.engine_of_another_start();
        engine.kept().forgotten.push(asked.0.id.clone());
        engine.kept().said.push(asked);
        room.start_again(&root, engine);
        let text = room.fake.wait("the caption to go", |world| {
            let messages = world.bots_messages(thread);
            let text: Vec<&str> = messages.iter().filter_map(|it| it["content"].as_str()).collect();
            let text = text.join("\n");
            (!text.contains("**Ann:**")).then_some(text)
        });
        assert!(text.contains("The call is over"), "{text}");
        assert!(!file.exists());
    });
}

#[test]
fn captions_have_no_more_readers_than_the_chat_of_the_voice_channel() {
    in_own_process("captions::captions_have_no_more_readers_than_the_chat_of_the_voice_channel", |root| {
        let room = Room::open(&root, &["Ann", "Robert"], vec![Mode::Aes256Gcm], ANSWER);
        room.press(0, "Hear me");
        let [square, den] = ["square", "den"].map(|name| room.text_channel(name));
        let guild = room.fake.world(|world| world.channels[&room.channel].guild.expect("a channel of a server"));
        let hidden = Overwrite { id: guild, user: false, allow: Bits::default(), deny: Bits::VIEW };
        let seen = |id: u64| Overwrite { id, user: true, allow: Bits::VIEW, deny: Bits::default() };
        // Robert sees the voice channel and the den no more.
        room.fake.world(|world| {
            world.leave_voice(room.people[1]);
            let cid = world.user("Cid");
            world.invite(guild, cid);
            for channel in [room.channel, den] {
                world.set_overwrites(channel, vec![hidden, seen(room.people[0]), seen(BOT)]);
            }
        });
        let chat = ChatId::new(format!("discord:{den}")).expect("an id");
        room.until("the bot to know who sees it", || {
            let place = room.runtime.block_on(room.discord.place(&chat, &room.person(1)));
            matches!(place, Ok(None)).then_some(())
        });
        let refused = room.captions(square, 0, CallWish::On).err();
        assert!(
            matches!(&refused, Some(VoiceError::Unavailable(why)) if why.starts_with("More people")),
            "{refused:?}"
        );
        let thread = room.turn_on(den);
        room.hear(0);
        room.say(0, "I was at the market yesterday.", Network::default());
        room.shown(thread, "**Ann:**");
        // They end before anybody else reads a word.
        room.fake.world(|world| world.set_overwrites(den, Vec::new()));
        room.pause();
        room.say(0, "The lighthouse is a secret place.", Network::default());
        room.said(2);
        let text = room.shown(thread, "more people can read this channel");
        assert!(!text.contains("lighthouse"), "{text}");
        assert_eq!(room.captions(den, 0, CallWish::Show), Ok(None));
    });
}
