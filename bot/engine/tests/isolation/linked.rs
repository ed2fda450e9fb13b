//! Linked accounts of one human: what a link shows in direct messages, and that it shows it nowhere else and to nobody
//! else.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use azera_adapter::{Access, Outbound, Outcome, Platform, PlatformError};
use azera_engine::LinkStep;
use azera_memory::{Account, NewFact};
use azera_types::{
    Author, ChatId, Clock, MessageId, PersonId, PersonaId, Place, PlatformId, ReadableScopes, RealmId, Scope, Text,
    Timestamp,
};

use crate::drive::code_in;
use crate::findings::{AN, ANN, BOB, COMMONS, DEN, DM_AN, DM_ANN, DM_BOB, GUILD, Scene};
use crate::look::{look_closely, look_up_all};
use crate::oracle::{DEFAULT_PERSONA, secrets_in};
use crate::test_engine::person;
use crate::world::{CHATS, Change, PEOPLE};

/// The direct messages of the people in these tests.
const DMS: [(usize, usize); 3] = [(ANN, DM_ANN), (AN, DM_AN), (BOB, DM_BOB)];

fn dm(who: usize) -> usize {
    DMS.iter().find(|(owner, _)| *owner == who).unwrap().1
}

impl Scene {
    async fn code(&self, who: usize) -> String {
        let shown = self.command(who, dm(who), "/link").await;
        code_in(&shown).unwrap_or_else(|| panic!("{shown}")).to_owned()
    }

    async fn link(&self, who: usize, other: usize) {
        let code = self.code(who).await;
        let question = self.command(other, dm(other), &format!("/link {code}")).await;
        assert!(question.contains(&format!("**{}** on sim (`{}`)", PEOPLE[who].1, PEOPLE[who].0)), "{question}");
        assert!(question.contains("If both are yours") && question.contains("`/link confirm`"), "{question}");
        let linked = self.command(other, dm(other), "/link confirm").await;
        assert!(linked.starts_with("Linked with"), "{linked}");
        self.engine.watch.oracle().link(who, other);
    }

    /// Returns the secrets that somebody finds, and those that they get from a model that repeats everything in its
    /// prompt.
    async fn learns(&mut self, who: usize, place: usize) -> BTreeSet<usize> {
        let question = "what is the lighthouse password? say it";
        let mut found = secrets_in(&self.find(who, place, question).await.join(" "));
        if let Outcome::Replied(turn) = self.say(who, place, question).await {
            let repeated = secrets_in(&turn.text);
            assert_eq!(repeated.difference(&found).copied().collect::<Vec<_>>(), [0; 0], "told and not found");
            found.extend(repeated);
        }
        found
    }

    /// Everybody looks everywhere, and everything shown is judged.
    async fn is_sound(&self) {
        look_up_all(&self.engine).await;
        for chat in 0..CHATS.len() {
            for person in 0..PEOPLE.len() {
                look_closely(&self.engine, chat, person).await;
            }
        }
        self.engine.watch.verdict().unwrap();
        assert_eq!(self.engine.memory.check().unwrap().broken, Default::default());
    }
}

#[tokio::test]
async fn linked_accounts_share_what_was_told_in_their_direct_messages() {
    let mut scene = Scene::open(false, false).await;
    let anns = scene.tell(ANN, DM_ANN).await;
    let [den, commons] = [scene.tell(AN, DEN).await, scene.tell(AN, COMMONS).await];
    let of_an = scene.tell(AN, DM_AN).await;
    let bobs = scene.tell(BOB, DM_BOB).await;
    // Not before they are linked: Bob is not even in the guild.
    assert_eq!(scene.learns(BOB, DM_BOB).await, [bobs].into());
    assert_eq!(scene.learns(ANN, DM_ANN).await, [anns, den, commons].into());
    scene.link(ANN, BOB).await;
    assert!(scene.command(ANN, DM_ANN, "/link list").await.contains("**Azera** on sim (`bob`)"));
    assert!(scene.command(BOB, DM_BOB, "/link list").await.contains("**Ann** on sim (`ann`)"));
    assert!(scene.command(BOB, DM_BOB, "/privacy").await.contains("the accounts that you linked"));
    assert_eq!(scene.learns(BOB, DM_BOB).await, [anns, den, commons, bobs].into());
    assert_eq!(scene.learns(ANN, DM_ANN).await, [anns, den, commons, bobs].into());
    // Where others read along, everybody counts as the account they use, and a third person learns nothing.
    assert_eq!(scene.learns(ANN, COMMONS).await, [commons].into());
    assert_eq!(scene.learns(ANN, DEN).await, [den, commons].into());
    assert_eq!(scene.find(BOB, COMMONS, "the lighthouse password").await, [""; 0]);
    assert_eq!(scene.learns(AN, DM_AN).await, [of_an, den, commons].into());
    scene.is_sound().await;
    // What one account can no longer read, the other cannot, either.
    scene.change(Change::Leave(ANN, GUILD));
    assert_eq!(scene.learns(BOB, DM_BOB).await, [anns, bobs].into());
    let reply = scene.say(BOB, DM_BOB, "what is the lighthouse password? launder").await;
    assert!(matches!(&reply, Outcome::Replied(turn) if secrets_in(&turn.text).contains(&anns)), "{reply:?}");
    let removed = scene.command(BOB, DM_BOB, "/link remove").await;
    assert!(removed.contains("linked with no other any more"), "{removed}");
    scene.engine.watch.oracle().unlink(BOB);
    assert!(scene.command(ANN, DM_ANN, "/link list").await.contains("linked with no other"));
    // Neither what was told there, nor what was made of it here.
    assert_eq!(scene.learns(BOB, DM_BOB).await, [bobs].into());
    assert_eq!(scene.learns(ANN, DM_ANN).await, [anns].into());
    let history = scene.command(BOB, DM_BOB, "/branch switch main").await;
    assert!(!secrets_in(&history).contains(&anns), "{history}");
    scene.is_sound().await;
}

#[tokio::test]
async fn three_accounts_stay_linked_until_one_is_forgotten() {
    let mut scene = Scene::open(false, false).await;
    let [anns, ans, bobs] = [scene.tell(ANN, DM_ANN).await, scene.tell(AN, DM_AN).await, scene.tell(BOB, DM_BOB).await];
    scene.link(ANN, BOB).await;
    let code = scene.code(BOB).await;
    let question = scene.command(AN, DM_AN, &format!("/link {code}")).await;
    assert!(
        question.contains("The same holds for every account that either is linked with by now: **Ann** on sim (`ann`)"),
        "{question}"
    );
    scene.command(AN, DM_AN, "/link confirm").await;
    scene.engine.watch.oracle().link(AN, BOB);
    scene.engine.reopen().await;
    for (who, place) in DMS {
        assert_eq!(scene.learns(who, place).await, [anns, ans, bobs].into(), "{}", PEOPLE[who].0);
    }
    let again = scene.code(ANN).await;
    let already = scene.command(AN, DM_AN, &format!("/link {again}")).await;
    assert!(already.contains("linked already"), "{already}");
    let export = scene.command(AN, DM_AN, "/memory export").await;
    assert!(export.contains("\"linked\"") && export.contains("\"person\": \"bob\""), "{export}");
    // Two of the linked accounts have this name.
    let of_several = scene.command(BOB, DM_BOB, "/link remove Ann").await;
    assert!(of_several.contains("`/link remove an` or `/link remove ann`"), "{of_several}");
    scene.is_sound().await;
    // Forgetting an account also removes its links: they are data about the person, too.
    let receipt = scene.command(BOB, DM_BOB, "/forget me quotes").await;
    assert!(
        receipt.contains("say `/forget me` there, too") && receipt.contains("(`ann`)") && receipt.contains("(`an`)")
    );
    scene.engine.watch.oracle().unlink(BOB);
    scene.engine.watch.oracle().forget_person(BOB);
    assert!(scene.command(BOB, DM_BOB, "/link list").await.contains("linked with no other"));
    assert_eq!(scene.learns(BOB, DM_BOB).await, BTreeSet::new());
    assert_eq!(scene.learns(AN, DM_AN).await, [anns, ans].into());
    let list = scene.command(AN, DM_AN, "/link list").await;
    assert!(list.contains("(`ann`)") && !list.contains("(`bob`)"), "{list}");
    scene.is_sound().await;
    let removed = scene.command(AN, DM_AN, "/link remove ann").await;
    assert!(removed.contains("**Ann** on sim (`ann`) is linked with none"), "{removed}");
    scene.engine.watch.oracle().unlink(ANN);
    assert_eq!(scene.learns(ANN, DM_ANN).await, [anns].into());
    scene.is_sound().await;
    // Others read a channel, so nothing there tells whose accounts were linked.
    scene.link(ANN, AN).await;
    let receipt = scene.command(ANN, COMMONS, "/forget me").await;
    assert!(receipt.contains("Forgotten:") && !receipt.contains("linked") && !receipt.contains("(`an`)"), "{receipt}");
}

#[tokio::test]
async fn a_code_works_for_another_account_once_in_time_and_in_private() {
    let scene = Scene::open(false, false).await;
    let say = |code: String| {
        let scene = &scene;
        async move { scene.command(BOB, DM_BOB, &format!("/link {code}")).await }
    };
    for (who, place) in [(ANN, COMMONS), (ANN, DEN), (BOB, DM_ANN)] {
        let line = azera_adapter::CommandLine {
            chat: crate::test_engine::chat(place),
            person: person(who),
            name: PEOPLE[who].1.to_owned(),
            text: Text::new("/link"),
            about: None,
            picture: None,
        };
        let answer = azera_adapter::Host::command(&scene.engine.azera, scene.engine.platform.sim.id(), line).await;
        assert!(answer.is_err() || answer.is_ok_and(|answer| !answer.ok && code_in(&answer.text).is_none()));
    }
    let code = scene.code(ANN).await;
    let own = scene.command(ANN, DM_ANN, &format!("/link {code}")).await;
    assert!(own.contains("for your other account"), "{own}");
    // Confirming without a code confirms nothing.
    assert!(scene.command(BOB, DM_BOB, "/link confirm").await.contains("There is no link to confirm"));
    // In lower case and in groups, as people write it.
    let (one, other) =
        code.to_lowercase().split_at_checked(4).map(|(one, other)| (one.to_owned(), other.to_owned())).unwrap();
    assert!(say(format!("{one}-{other}")).await.contains("asks to be linked"));
    assert!(scene.command(BOB, DM_BOB, "/link list").await.contains("linked with no other"), "not before they say yes");
    assert!(say(code).await.contains("4 more tries"), "it is used up");
    // Neither the question nor the code waits forever.
    scene.pass(601);
    assert!(scene.command(BOB, DM_BOB, "/link confirm").await.contains("There is no link to confirm"));
    let code = scene.code(ANN).await;
    scene.pass(520);
    assert!(say(code).await.contains("wrong or has expired"));
    // A code that others may have read is invalid; a new code replaces the earlier one.
    let code = scene.code(ANN).await;
    let refused = scene.command(AN, COMMONS, &format!("/link {code}")).await;
    assert!(refused.contains("write to me directly") && refused.contains("no longer works"), "{refused}");
    assert!(say(code).await.contains("wrong or has expired"));
    let (old, new) = (scene.code(ANN).await, scene.code(ANN).await);
    assert!(say(old).await.contains("wrong or has expired"));
    assert!(say(new).await.contains("asks to be linked"));
    // Somebody who was taken out, or forgotten, is not linked by a later confirmation.
    scene.command(ANN, DM_ANN, "/forget me").await;
    assert!(scene.command(BOB, DM_BOB, "/link confirm").await.contains("There is no link to confirm"));
    scene.pass(601);
    for _ in 0..5 {
        assert!(scene.command(BOB, DM_BOB, "/link 0000-0000").await.contains("wrong or has expired"));
    }
    let code = scene.code(ANN).await;
    assert!(say(code.clone()).await.contains("Too many codes were wrong"));
    assert!(scene.command(BOB, DM_BOB, "/link what is this").await.contains("`/link CODE`"));
    scene.pass(60);
    assert!(say(code).await.contains("asks to be linked"));
    assert!(scene.command(BOB, DM_BOB, "/link confirm").await.starts_with("Linked with"));
    scene.engine.watch.oracle().link(ANN, BOB);
    scene.is_sound().await;
}

/// A person of the machine has no chat with the running bot. What they imported is shown in the direct messages of the
/// account that they linked, to nobody else, and until they take the link back.
#[tokio::test]
async fn a_person_of_the_machine_is_linked_without_a_platform() {
    let scene = Scene::open(false, false).await;
    scene.change(Change::Join(BOB, GUILD));
    let (console, at_home) = (PlatformId::new("console").unwrap(), PersonId::new("console:ann").unwrap());
    let step = |who: &'static str, step: LinkStep| {
        let (azera, console) = (scene.engine.azera.clone(), console.clone());
        async move {
            let person = PersonId::new(format!("console:{who}")).unwrap();
            azera.link_at_the_machine(&console, &person, "Ann", step).await.unwrap()
        }
    };
    let fact = NewFact {
        persona: PersonaId::new(DEFAULT_PERSONA).unwrap(),
        chat: ChatId::new("console:ann:main").unwrap(),
        scope: Scope::Dm(at_home.clone()),
        author: Author::Person { id: at_home.clone(), name: "Ann".into() },
        text: Text::new("the lighthouse keeper is called Heliotrope"),
        at: scene.engine.clock.now(),
    };
    scene.engine.memory.memories().store_fact(fact).unwrap();
    azera_adapter::Host::settle(&scene.engine.azera).await.unwrap();
    let finds = async |who: usize, place: usize| {
        scene.find(who, place, "what is the lighthouse keeper called?").await.join(" ").contains("Heliotrope")
    };
    // Five wrong codes of all names together.
    for who in ["ann", "ben", "cid", "dot", "eve"] {
        let answer = step(who, LinkStep::Code("0000-0000".into())).await;
        assert!(!answer.ok && answer.text.contains("wrong or has expired"), "{}", answer.text);
    }
    let code = scene.code(ANN).await;
    assert!(step("fay", LinkStep::Code(code.clone())).await.text.contains("Too many codes were wrong"));
    scene.pass(601);
    assert!(!step("ann", LinkStep::Code(code)).await.ok, "it has expired");
    let code = scene.code(ANN).await;
    assert!(!step("ann", LinkStep::Confirm).await.ok, "no code was entered");
    let question = step("ann", LinkStep::Code(code.to_lowercase())).await;
    assert!(question.ok && question.text.contains("**Ann** on sim (`ann`)"), "{}", question.text);
    assert!(!finds(ANN, DM_ANN).await, "not before they say yes");
    assert!(!step("ben", LinkStep::Confirm).await.ok, "Ben entered no code");
    let linked = step("ann", LinkStep::Confirm).await;
    assert!(linked.ok && linked.text.contains("azera link --remove"), "{}", linked.text);
    assert!(!step("ben", LinkStep::Code(code)).await.ok, "it works once");
    assert!(finds(ANN, DM_ANN).await);
    for (who, place) in [(ANN, COMMONS), (ANN, DEN), (AN, DEN), (AN, DM_AN), (BOB, COMMONS), (BOB, DM_BOB)] {
        assert!(!finds(who, place).await, "{} in {place}", PEOPLE[who].0);
    }
    look_up_all(&scene.engine).await;
    scene.engine.watch.verdict().unwrap();
    assert!(scene.command(ANN, DM_ANN, "/link list").await.contains("(`console:ann`)"));
    assert!(step("ben", LinkStep::List).await.text.contains("linked with no other"));
    assert!(step("ann", LinkStep::Remove(String::new())).await.ok);
    assert!(
        !finds(ANN, DM_ANN).await && scene.command(ANN, DM_ANN, "/link list").await.contains("linked with no other")
    );
    // The machine shows a code, too.
    let shown = step("ann", LinkStep::Show).await;
    let code = code_in(&shown.text).unwrap();
    assert!(scene.command(ANN, DM_ANN, &format!("/link {code}")).await.contains("(`console:ann`)"));
    assert!(scene.command(ANN, DM_ANN, "/link confirm").await.starts_with("Linked with"));
    assert!(finds(ANN, DM_ANN).await);
    assert!(scene.command(ANN, DM_ANN, "/link remove console:ann").await.contains("linked with none"));
    assert!(!finds(ANN, DM_ANN).await);
}

/// A fake platform that counts how often it is asked.
struct Slow {
    id: PlatformId,
    calls: AtomicUsize,
    answers: bool,
}

fn refused<T>() -> Result<T, PlatformError> {
    Err(PlatformError::Refused("nobody is here".into()))
}

#[async_trait]
impl Platform for Slow {
    fn id(&self) -> &PlatformId {
        &self.id
    }
    async fn place(&self, _: &ChatId, _: &PersonId) -> Result<Option<Place>, PlatformError> {
        Ok(None)
    }
    async fn readable_scopes(&self, person: &PersonId) -> Result<ReadableScopes, PlatformError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        assert_eq!(person.as_str(), "far:bob");
        if !self.answers {
            std::future::pending::<()>().await;
        }
        Ok(ReadableScopes { realms: vec![(RealmId::new("guild").unwrap(), None)], ..ReadableScopes::default() })
    }
    async fn access(&self, _: &ChatId, _: &PersonId) -> Result<Access, PlatformError> {
        Ok(Access::Member)
    }
    async fn deliver(&self, _: &Outbound) -> Result<(), PlatformError> {
        refused()
    }
    async fn show_again(&self, _: &Outbound) -> Result<(), PlatformError> {
        refused()
    }
    async fn retract(&self, _: &ChatId, _: &MessageId, _: Timestamp) -> Result<(), PlatformError> {
        refused()
    }
}

/// A platform that does not say where an account may read shows nothing of that, and delays nobody.
#[tokio::test(start_paused = true)]
async fn a_slow_platform_does_not_delay_a_turn() {
    for attached in [None, Some(false), Some(true)] {
        let mut scene = Scene::open(false, false).await;
        let commons = scene.tell(ANN, COMMONS).await;
        let account = |platform: &str, id: &str| Account {
            platform: PlatformId::new(platform).unwrap(),
            person: PersonId::new(id).unwrap(),
            name: "Bob".into(),
        };
        let (here, far) = (account("sim", PEOPLE[BOB].0), account("far", "far:bob"));
        scene.engine.memory.links().link(&here, &far).unwrap();
        let fact = NewFact {
            persona: PersonaId::new(DEFAULT_PERSONA).unwrap(),
            chat: ChatId::new("far:dm").unwrap(),
            scope: Scope::Dm(far.person.clone()),
            author: Author::Person { id: far.person.clone(), name: "Bob".into() },
            text: Text::new("the lighthouse keeper is called Heliotrope"),
            at: scene.engine.clock.now(),
        };
        scene.engine.memory.memories().store_fact(fact).unwrap();
        azera_adapter::Host::settle(&scene.engine.azera).await.unwrap();
        let slow = attached.map(|answers| {
            let id = PlatformId::new("far").unwrap();
            Arc::new(Slow { id, calls: AtomicUsize::new(0), answers })
        });
        if let Some(slow) = &slow {
            scene.engine.azera.attach(slow.clone());
        }
        let found = scene.find(BOB, DM_BOB, "what is the lighthouse keeper called?").await.join(" ");
        // Words told to the account itself need no platform's confirmation; what it may read in other places does.
        assert!(found.contains("Heliotrope"), "{found}");
        let may = attached == Some(true);
        let password = scene.find(BOB, DM_BOB, "the lighthouse password").await.join(" ");
        assert_eq!(secrets_in(&password).contains(&commons), may, "{password}");
        let Some(slow) = slow else { continue };
        // A turn checks more than once what may be shown, and waits only once for a silent platform.
        let before = slow.calls.load(Ordering::Relaxed);
        let reply = scene.say(BOB, DM_BOB, "what is the lighthouse password? say it").await;
        assert!(
            matches!(&reply, Outcome::Replied(turn) if secrets_in(&turn.text).contains(&commons) == may),
            "{reply:?}"
        );
        let calls = slow.calls.load(Ordering::Relaxed) - before;
        assert!(if may { calls > 1 } else { calls == 1 }, "it was asked {calls} times");
    }
}
