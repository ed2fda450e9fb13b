//! Imported conversations are for the person who imported them, and for the persona that remembers them.

mod elsewhere;
mod reading;
mod search;

use azera_adapter::{Outcome, Platform, Reading, SessionReader};
use azera_memory::{
    Forget, Import, ImportState, MemoryRow, NewImported, PendingImport, RanCommand, ReadScope, Salience, project_realm,
};
use azera_types::{
    ChatId, Clock, MessageId, PersonId, PersonaId, Place, PlaceKind, ReadableScopes, RealmId, Scope, Text,
};
use tokio_util::sync::CancellationToken;

use crate::findings::{AN, ANN, BOB, COMMONS, DEN, DM_AN, DM_ANN, DM_BOB, GUILD, Scene};
use crate::look::look_up_all;
use crate::oracle::DEFAULT_PERSONA;
use crate::test_engine::{chat, person};
use crate::world::{Change, PEOPLE};

/// What the imported conversations are about.
const QUESTION: &str = "what opens the lighthouse?";

impl Scene {
    /// Imports a conversation of two messages: one of the person, and one of an assistant.
    fn import(&self, by: usize, persona: &str, scope: Scope, word: &str) -> Import {
        let said = format!("the {word} opens the lighthouse");
        let answer = format!("so I say: the {word} opens the lighthouse door");
        self.import_texts(by, persona, scope, word, [said, answer])
    }

    /// Imports a conversation of a text of the person, and one of an assistant, under a name.
    fn import_texts(&self, by: usize, persona: &str, scope: Scope, word: &str, [own, other]: [String; 2]) -> Import {
        self.import_as(by, import_of(by, persona, scope, word), word, [own, other])
    }

    fn import_as(&self, by: usize, import: Import, word: &str, [own, other]: [String; 2]) -> Import {
        let assistant = PersonId::new(format!("import:{}", PEOPLE[by].0)).unwrap();
        let said = [("one", person(by), PEOPLE[by].1, own), ("two", assistant, "ChatGPT", other)];
        self.pass(90);
        for (number, person, name, text) in said {
            let new = NewImported {
                id: MessageId::new(format!("import:{word}:{number}")).unwrap(),
                chat: ChatId::new(format!("import:{word}")).unwrap(),
                title: Some(format!("about the {word}")),
                after: None,
                person,
                name: name.into(),
                text: Text::new(text),
                at: self.engine.clock.now(),
            };
            let added = self.engine.memory.imports().add(&import, new, self.engine.clock.now()).unwrap();
            assert_eq!(added, ImportState::New);
        }
        import
    }

    /// Imports a conversation of one sentence into a project of the person, and lets nobody search it.
    pub fn import_unsearched(&self, by: usize, chat: &str, said: &str) {
        let scope = Scope::Realm(self.project(by, "gate"));
        let import = Import { learns: false, ..import_of(by, DEFAULT_PERSONA, scope, chat) };
        self.import_as(by, import, chat, [said.to_owned(), format!("noted, {chat}")]);
    }

    /// Imports messages of the person into a chat, from a number on.
    fn import_own(&self, import: &Import, chat: &str, from: usize, texts: &[&str]) {
        self.pass(90);
        for (number, text) in texts.iter().enumerate() {
            let new = NewImported {
                id: MessageId::new(format!("import:{chat}:{}", from + number)).unwrap(),
                chat: ChatId::new(format!("import:{chat}")).unwrap(),
                title: None,
                after: None,
                person: import.by.clone(),
                name: "Ann".into(),
                text: Text::new(*text),
                at: self.engine.clock.now(),
            };
            assert_eq!(
                self.engine.memory.imports().add(import, new, self.engine.clock.now()).unwrap(),
                ImportState::New
            );
        }
    }

    /// Searches what was imported. Returns true if nothing is left.
    async fn search_imports(&self) -> bool {
        self.engine.azera.search_imports(None, &CancellationToken::new()).await.unwrap()
    }

    /// Returns the imported chats that wait for something.
    fn pending(&self, waits: impl Fn(&PendingImport) -> bool) -> Vec<String> {
        let pending = self.engine.memory.imports().pending().unwrap();
        pending.iter().filter(|import| waits(import)).map(|import| import.chat.to_string()).collect()
    }

    /// Returns the imported chats that were not searched to their end.
    fn unsearched(&self) -> Vec<String> {
        self.pending(|import| !import.is_searched)
    }

    /// Returns the imported chats whose statements wait to be compared.
    fn uncompared(&self) -> Vec<String> {
        self.pending(|import| import.waits)
    }

    /// Returns what is marked of Ann's words in her direct messages.
    fn marked_of_ann(&self) -> Vec<MemoryRow> {
        self.engine.memory.memories().salient(&in_dm_of_ann(), &person(ANN), 500).unwrap()
    }

    /// Imports a conversation of one sentence into a project of the person.
    fn import_said(&self, by: usize, chat: &str, said: &str) {
        let scope = Scope::Realm(self.project(by, "gate"));
        self.import_texts(by, DEFAULT_PERSONA, scope, chat, [said.to_owned(), format!("noted, {chat}")]);
    }

    /// Returns which of the words are found, listed, or told by a model that repeats everything in its prompt.
    async fn shows(&mut self, who: usize, place: usize, words: &[&str]) -> Vec<String> {
        let mut shown = self.find(who, place, QUESTION).await.join("\n");
        for command in ["/me", "/memory search lighthouse", "/stats", "/why", "/graph list"] {
            shown += &self.command(who, place, command).await;
        }
        if let Outcome::Replied(turn) = self.say(who, place, QUESTION).await {
            shown += &turn.text;
        }
        words.iter().filter(|word| shown.contains(**word)).map(|word| (*word).to_owned()).collect()
    }

    fn project(&self, by: usize, name: &str) -> RealmId {
        project_realm(&person(by), name).unwrap()
    }
}

fn in_dm_of_ann() -> ReadScope {
    let place = Place { chat: chat(DM_ANN), kind: PlaceKind::Dm(person(ANN)), since: None };
    ReadScope::in_place(PersonaId::new(DEFAULT_PERSONA).unwrap(), &place, &ReadableScopes::default())
}

fn import_of(by: usize, persona: &str, scope: Scope, word: &str) -> Import {
    Import {
        id: format!("of-{word}"),
        by: person(by),
        persona: PersonaId::new(persona).unwrap(),
        scope,
        file: format!("{word}.json"),
        format: "chatgpt".into(),
        learns: true,
    }
}

const WORDS: [&str; 4] = ["zeppelin", "marzipan", "obsidian", "cormorant"];

/// Ann imports for one persona into her direct messages and into two projects, and for another persona. Nobody else is
/// shown any of it anywhere, and she is not where others read along.
#[tokio::test]
async fn imported_conversations_are_shown_to_the_person_who_imported_them_alone() {
    let mut scene = Scene::open(false, false).await;
    scene.change(Change::Join(BOB, GUILD));
    let (gate, boat) = (scene.project(ANN, "Gate"), scene.project(ANN, "boat"));
    scene.import(ANN, DEFAULT_PERSONA, Scope::Dm(person(ANN)), "zeppelin");
    scene.import(ANN, DEFAULT_PERSONA, Scope::Realm(gate.clone()), "marzipan");
    scene.import(ANN, DEFAULT_PERSONA, Scope::Realm(boat), "obsidian");
    scene.import(ANN, "azera", Scope::Dm(person(ANN)), "cormorant");
    scene.engine.azera.index_all().await.unwrap();
    assert_eq!(scene.shows(ANN, DM_ANN, &WORDS).await, ["zeppelin", "marzipan", "obsidian"]);
    for (who, place) in [(ANN, COMMONS), (ANN, DEN), (AN, DEN), (AN, DM_AN), (BOB, COMMONS), (BOB, DM_BOB)] {
        assert_eq!(scene.shows(who, place, &WORDS).await, [""; 0], "{} in {place}", PEOPLE[who].0);
    }
    // In a project, nothing of another one and nothing of the direct messages is shown.
    let place = Place { chat: chat(DM_ANN), kind: PlaceKind::Public(gate), since: None };
    for (persona, chats) in [(DEFAULT_PERSONA, 1), ("azera", 0)] {
        let persona = PersonaId::new(persona).unwrap();
        let read_scope = ReadScope::in_place(persona, &place, &ReadableScopes::default());
        let found = scene.engine.memory.imports().latest_chats(&read_scope, read_scope.place(), 10).unwrap();
        assert_eq!(found.len(), chats);
        assert!(found.iter().all(|chat| chat.title.as_deref() == Some("about the marzipan")), "{found:?}");
    }
    look_up_all(&scene.engine).await;
    scene.engine.watch.verdict().unwrap();
}

/// A command without a chat model only marks. The running bot compares, also after a restart, and only where the person said it.
#[tokio::test]
async fn imported_statements_are_compared_later() {
    const OLD: &str = "my dentist appointment is on tuesday. quiet";
    let mut scene = Scene::open(false, false).await;
    let scope = Scope::Realm(scene.project(ANN, "gate"));
    let place = |realm: &Scope| match realm {
        Scope::Realm(realm) => Place { chat: chat(DM_ANN), kind: PlaceKind::Public(realm.clone()), since: None },
        _ => unreachable!("it is a realm"),
    };
    let persona = PersonaId::new(DEFAULT_PERSONA).unwrap();
    let read_scope = ReadScope::in_place(persona, &place(&scope), &ReadableScopes::default());
    // The same words elsewhere are not touched.
    scene.say(ANN, DM_ANN, OLD).await;
    scene.wait(24 * 3_600).await;
    for (word, said) in [("first", OLD), ("second", "my dentist appointment is on friday now. quiet")] {
        scene.wait(24 * 3_600).await;
        scene.import_said(ANN, word, said);
        assert!(scene.search_imports().await);
    }
    let superseded = |scene: &Scene| {
        let marked = scene.engine.memory.memories().salient(&read_scope, &person(ANN), 10).unwrap();
        let old = marked.iter().find(|memory| memory.text.contains("on tuesday")).expect("it is marked");
        old.salience.as_ref().unwrap().superseded.is_some()
    };
    assert!(!superseded(&scene), "nobody compared it");
    // The first one was looked at meanwhile, and contradicted nothing.
    assert_eq!(scene.uncompared().len(), 1);
    scene.engine.reopen().await;
    scene.wait(3_600).await;
    assert!(superseded(&scene), "it was compared");
    assert_eq!(scene.uncompared(), [""; 0]);
    let me = scene.command(ANN, DM_ANN, "/me").await;
    let own = me.lines().find(|line| line.contains("on tuesday") && !line.contains("until"));
    assert!(own.is_some(), "what she said in person stands: {me}");
    // What waits is forgotten with its chat.
    scene.engine.memory.imports().set_waiting(&ChatId::new("import:second").unwrap(), true).unwrap();
    scene.engine.memory.forgetting().forget(&Forget::Import("of-second".into()), false).unwrap();
    assert_eq!(scene.uncompared(), [""; 0]);
}

/// Newer statements do not crowd out the earlier one that an imported one contradicts.
#[tokio::test]
async fn an_old_import_is_compared_with_what_was_said_before_it() {
    const OLD: &str = "my dentist appointment is on tuesday. quiet";
    let mut scene = Scene::open(false, false).await;
    let place = Place { chat: chat(DM_ANN), kind: PlaceKind::Public(scene.project(ANN, "gate")), since: None };
    let persona = PersonaId::new(DEFAULT_PERSONA).unwrap();
    let read_scope = ReadScope::in_place(persona, &place, &ReadableScopes::default());
    scene.say(ANN, DM_ANN, OLD).await;
    for (word, said) in [("first", OLD), ("second", "my dentist appointment is on friday now. quiet")] {
        scene.wait(24 * 3_600).await;
        scene.import_said(ANN, word, said);
        assert!(scene.search_imports().await);
    }
    for number in 0..70 {
        let word = format!("later{number}");
        scene.import_said(ANN, &word, "the lamp is lit. quiet");
        let (kind, with) = ("fact".to_owned(), Vec::new());
        let salience = Salience { kind, importance: 0.5, from: 0, to: 15, with, superseded: None, used: None };
        let own = MessageId::new(format!("import:{word}:one")).unwrap();
        assert!(scene.engine.memory.memories().mark(&own, &salience).unwrap());
    }
    scene.engine.reopen().await;
    // A turn of the background searches and compares some of them.
    for _ in 0..8 {
        scene.wait(600).await;
    }
    let marked = scene.engine.memory.memories().salient(&read_scope, &person(ANN), 200).unwrap();
    let old = marked.iter().find(|memory| memory.text.contains("on tuesday")).expect("it is marked");
    assert!(old.salience.as_ref().unwrap().superseded.is_some(), "it was compared");
}

/// A project's name never leads to the realm of another person's project, or to a realm of a platform.
#[tokio::test]
async fn a_project_is_a_realm_of_one_person() {
    let scene = Scene::open(false, false).await;
    let odd = [("console:a", "b:c"), ("console:a:b", "c"), ("console:a", "b-c"), ("console:a", " B:C ")];
    let realms = odd.map(|(by, name)| project_realm(&PersonId::new(by).unwrap(), name).unwrap());
    assert_eq!(realms[0], realms[3], "the same name of the same person");
    assert_ne!(realms[0], realms[1]);
    assert_ne!(realms[1], realms[2]);
    assert!(project_realm(&person(ANN), "  ").is_err() && project_realm(&person(ANN), "a\nb").is_err());
    scene.import(ANN, DEFAULT_PERSONA, Scope::Realm(scene.project(ANN, "gate")), "marzipan");
    let projects = |who| scene.engine.memory.imports().projects_of(&person(who)).unwrap();
    assert_eq!(projects(ANN), [scene.project(ANN, "gate")]);
    for who in [AN, BOB] {
        assert_eq!(projects(who), [], "{}", PEOPLE[who].0);
    }
}

/// After an undo, and after forgetting the person, nothing of it is shown, and no reply repeats it.
#[tokio::test]
async fn an_undone_import_is_shown_to_nobody() {
    let mut scene = Scene::open(false, false).await;
    let gate = Scope::Realm(scene.project(ANN, "gate"));
    let import = scene.import(ANN, DEFAULT_PERSONA, gate, "marzipan");
    scene.import(ANN, DEFAULT_PERSONA, Scope::Dm(person(ANN)), "zeppelin");
    scene.engine.azera.index_all().await.unwrap();
    assert_eq!(scene.shows(ANN, DM_ANN, &WORDS).await, ["zeppelin", "marzipan"]);
    let receipt = scene.engine.memory.forgetting().forget(&Forget::Import(import.id), true).unwrap();
    assert_eq!((receipt.messages, receipt.chats), (2, 1));
    scene.engine.azera.index_all().await.unwrap();
    assert_eq!(scene.shows(ANN, DM_ANN, &WORDS).await, ["zeppelin"]);
    assert_eq!(scene.engine.memory.imports().projects_of(&person(ANN)).unwrap(), []);
    scene.engine.memory.forgetting().forget(&Forget::Person(person(ANN)), true).unwrap();
    scene.engine.azera.index_all().await.unwrap();
    assert_eq!(scene.shows(ANN, DM_ANN, &WORDS).await, [""; 0], "what the assistant said there is forgotten, too");
    assert_eq!(scene.engine.memory.imports().list(&person(ANN)).unwrap(), []);
}

/// The graph knows the names in an imported conversation, shows them to the person who imported it alone, and keeps none
/// of them after an undo.
#[tokio::test]
async fn names_in_an_import_are_shown_to_nobody_else() {
    let scene = Scene::open(false, false).await;
    scene.change(Change::Join(BOB, GUILD));
    let texts = ["My sister Miranda lives in Tallinn.", "Then Miranda met Rosalind in Riga."].map(str::to_owned);
    let gate = Scope::Realm(scene.project(ANN, "gate"));
    let import = scene.import_texts(ANN, DEFAULT_PERSONA, gate, "marzipan", texts.clone());
    scene.import_texts(ANN, "azera", Scope::Dm(person(ANN)), "cormorant", texts);
    scene.engine.azera.index_all().await.unwrap();
    let shown = scene.command(ANN, DM_ANN, "/graph Miranda").await;
    for part in ["Ann's sister is Miranda", "Miranda lives in Tallinn", "Miranda met Rosalind"] {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    for (who, place) in [(ANN, COMMONS), (ANN, DEN), (AN, DEN), (AN, DM_AN), (BOB, COMMONS), (BOB, DM_BOB)] {
        for command in ["/graph Miranda", "/graph Tallinn", "/graph Rosalind", "/graph list"] {
            let shown = scene.command(who, place, command).await;
            let is_unknown = ["Nobody named", "I know no names yet"].iter().any(|begin| shown.starts_with(begin));
            assert!(is_unknown, "{} in {place}, {command}: {shown}", PEOPLE[who].0);
        }
    }
    look_up_all(&scene.engine).await;
    scene.engine.watch.verdict().unwrap();
    scene.engine.memory.forgetting().forget(&Forget::Import(import.id), true).unwrap();
    assert!(scene.command(ANN, DM_ANN, "/graph Miranda").await.starts_with("Nobody named"));
    scene.engine.memory.forgetting().forget(&Forget::Person(person(ANN)), true).unwrap();
    for name in ["miranda", "tallinn", "rosalind"] {
        assert!(!scene.names(name), "a row still names {name}");
    }
}

/// What was learnt in the coding sessions of a project is shown to its person and persona alone, and nowhere after the
/// session was forgotten.
#[tokio::test]
async fn what_was_learnt_in_a_project_is_shown_to_nobody_else() {
    let scene = Scene::open(false, false).await;
    scene.change(Change::Join(BOB, GUILD));
    let (gate, boat) = (scene.project(ANN, "gate"), scene.project(ANN, "boat"));
    let imports = [
        scene.import(ANN, DEFAULT_PERSONA, Scope::Realm(gate), "marzipan"),
        scene.import(ANN, DEFAULT_PERSONA, Scope::Realm(boat), "obsidian"),
        scene.import(ANN, "azera", Scope::Realm(scene.project(ANN, "gate")), "cormorant"),
        scene.import(BOB, DEFAULT_PERSONA, Scope::Realm(scene.project(BOB, "gate")), "zeppelin"),
    ];
    for (import, word) in imports.iter().zip(["marzipan", "obsidian", "cormorant", "zeppelin"]) {
        let asked = MessageId::new(format!("import:{word}:one")).unwrap();
        let ran = |number: u32| RanCommand {
            id: format!("{word}{number}"),
            text: Text::new(format!("make {word}-test")),
            worked: Some(number < 2),
            at: scene.engine.clock.now(),
        };
        assert_eq!(scene.engine.memory.imports().ran(import, &asked, (0..3).map(ran).collect()).unwrap(), 3);
    }
    let words = ["marzipan", "obsidian", "cormorant", "zeppelin"];
    let shown = async |who: usize, place: usize, project: Option<&str>| {
        let (azera, sim) = (&scene.engine.azera, scene.engine.platform.sim.clone());
        let at = || Reading { chat: chat(place), person: person(who) };
        let project = || project.map(str::to_owned);
        let mut text = String::new();
        for one in azera.procedures(sim.id(), at(), project()).await.unwrap() {
            text += &one.steps.join(" ");
        }
        for one in azera.coding_sessions(sim.id(), at(), project()).await.unwrap() {
            text += &format!("{} {:?}", one.title, one.problem.map(|problem| problem.text));
        }
        if let Some(name) = project() {
            text += &azera.project_context(sim.id(), at(), name, 4_000).await.unwrap().unwrap_or_default();
        }
        words.iter().copied().filter(|word| text.contains(word)).collect::<Vec<_>>()
    };
    // What the context says; `None` if there is no such project.
    let told = async |who: usize, place: usize, project: &str| {
        let (azera, sim) = (&scene.engine.azera, scene.engine.platform.sim.clone());
        let at = Reading { chat: chat(place), person: person(who) };
        let text = azera.project_context(sim.id(), at, project.to_owned(), 4_000).await.unwrap()?;
        Some(words.iter().copied().filter(|word| text.contains(word)).collect::<Vec<_>>())
    };
    assert_eq!(told(ANN, DM_ANN, " Gate").await, Some(vec!["marzipan"]));
    assert_eq!(told(ANN, DM_ANN, "boat").await, Some(vec!["obsidian"]));
    assert_eq!(told(BOB, DM_BOB, "gate").await, Some(vec!["zeppelin"]));
    assert_eq!(told(BOB, DM_BOB, "boat").await, None, "it is Ann's");
    for (who, place) in [(ANN, COMMONS), (ANN, DEN), (AN, DEN), (AN, DM_AN), (BOB, COMMONS), (BOB, DM_ANN)] {
        assert_eq!(told(who, place, "gate").await, None, "{} in {place}", PEOPLE[who].0);
    }
    assert_eq!(shown(ANN, DM_ANN, None).await, ["marzipan", "obsidian"]);
    assert_eq!(shown(ANN, DM_ANN, Some(" Gate")).await, ["marzipan"]);
    assert_eq!(shown(BOB, DM_BOB, Some("gate")).await, ["zeppelin"]);
    for (who, place) in [(ANN, COMMONS), (ANN, DEN), (AN, DEN), (AN, DM_AN), (BOB, COMMONS), (BOB, DM_ANN)] {
        for project in [None, Some("gate"), Some("boat")] {
            assert_eq!(shown(who, place, project).await, [""; 0], "{} in {place}", PEOPLE[who].0);
        }
    }
    look_up_all(&scene.engine).await;
    scene.engine.watch.verdict().unwrap();
    scene.engine.memory.forgetting().forget(&Forget::Import(imports[0].id.clone()), true).unwrap();
    assert_eq!(shown(ANN, DM_ANN, None).await, ["obsidian"]);
    assert_eq!(told(ANN, DM_ANN, "gate").await, Some(Vec::new()), "what is left is another persona's");
    scene.engine.memory.forgetting().forget(&Forget::Person(person(ANN)), true).unwrap();
    assert_eq!(shown(ANN, DM_ANN, None).await, [""; 0]);
    assert_eq!(scene.engine.memory.sessions().kept_commands().unwrap(), 3, "Bob's alone");
}
