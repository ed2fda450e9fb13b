//! What a person's other projects tell a session goes to that person, for that persona, and from no project that is private.

use azera_adapter::{Platform, Reading, SessionReader};
use azera_config::Gardener;
use azera_memory::{Forget, Import, RanCommand, Salience};
use azera_types::{Clock, MessageId, Scope, Text, TimeZone};

use crate::findings::{AN, ANN, BOB, COMMONS, DEN, DM_AN, DM_ANN, DM_BOB, GUILD, Scene};
use crate::look::look_up_all;
use crate::oracle::DEFAULT_PERSONA;
use crate::test_engine::{chat, person};
use crate::world::{Change, PEOPLE};

/// What each project is told by, in its preference and in its command.
const WORDS: [&str; 6] = ["marzipan", "obsidian", "tangerine", "cormorant", "zeppelin", "basilisk"];

impl Scene {
    /// Imports a session into a project: a preference, and a command that worked twelve times.
    fn prefer(&self, who: usize, persona: &str, project: &str, word: &str, said: &str) -> Import {
        self.mark("preference", who, persona, project, word, said)
    }

    /// The same with a memory of another kind.
    fn mark(&self, kind: &str, who: usize, persona: &str, project: &str, word: &str, said: &str) -> Import {
        let texts = [said.to_owned(), format!("noted, {word}")];
        let import = self.import_texts(who, persona, Scope::Realm(self.project(who, project)), word, texts);
        let asked = MessageId::new(format!("import:{word}:one")).unwrap();
        let (kind, to) = (kind.to_owned(), said.len());
        let salience = Salience { kind, importance: 0.5, from: 0, to, with: Vec::new(), superseded: None, used: None };
        assert!(self.engine.memory.memories().mark(&asked, &salience).unwrap());
        let ran = |number: u32| RanCommand {
            id: format!("{word}{number}"),
            text: Text::new(format!("make {word}-test")),
            worked: Some(true),
            at: self.engine.clock.now(),
        };
        assert_eq!(self.engine.memory.imports().ran(&import, &asked, (0..12).map(ran).collect()).unwrap(), 12);
        import
    }

    /// Returns which words the context of a project names, in its own part and in that of other projects.
    async fn told(&self, who: usize, place: usize, project: &str, tokens: usize) -> [Vec<&'static str>; 2] {
        let (azera, sim) = (&self.engine.azera, self.engine.platform.sim.clone());
        let at = Reading { chat: chat(place), person: person(who) };
        let text = azera.project_context(sim.id(), at, project.to_owned(), tokens).await.unwrap().unwrap_or_default();
        assert!(text.len() <= tokens * 3, "the budget holds: {text}");
        let (own, others) = text.split_once("## From other projects").unwrap_or((&text, ""));
        for line in others.lines().filter(|line| line.starts_with("- ")) {
            assert!(["- boat: ", "- gate: ", "- shed: "].iter().any(|label| line.starts_with(label)), "{line}");
        }
        [own, others].map(|part| WORDS.into_iter().filter(|word| part.contains(word)).collect())
    }
}

#[tokio::test]
async fn other_projects_tell_their_person_and_persona_alone() {
    let scene = Scene::open(false, false).await;
    scene.change(Change::Join(BOB, GUILD));
    let likes = |word: &str| format!("I prefer that {word} tests are sentences.");
    let gate = scene.prefer(ANN, DEFAULT_PERSONA, "gate", "marzipan", &likes("marzipan"));
    let boat = scene.prefer(ANN, DEFAULT_PERSONA, "boat", "obsidian", &likes("obsidian"));
    // A project that is named as private, and a preference that names it.
    scene.prefer(ANN, DEFAULT_PERSONA, "Acme", "tangerine", &likes("tangerine"));
    scene.prefer(ANN, DEFAULT_PERSONA, "shed", "cormorant", "I prefer how Acme does it: cormorant tests.");
    scene.prefer(ANN, "azera", "boat", "zeppelin", &likes("zeppelin"));
    scene.prefer(BOB, DEFAULT_PERSONA, "boat", "basilisk", &likes("basilisk"));
    let nothing: [Vec<&str>; 2] = [Vec::new(), Vec::new()];
    // The shed tells its command, and keeps its preference to itself.
    let context = scene.told(ANN, DM_ANN, "gate", 4_000).await;
    assert_eq!(context, [vec!["marzipan"], vec!["obsidian", "cormorant"]]);
    assert_eq!(scene.told(ANN, DM_ANN, "boat", 4_000).await, [vec!["obsidian"], vec!["marzipan", "cormorant"]]);
    assert_eq!(scene.told(ANN, DM_ANN, "acme", 4_000).await, [vec!["tangerine"], vec![]], "it hears nothing");
    assert_eq!(scene.told(BOB, DM_BOB, "boat", 4_000).await, [vec!["basilisk"], vec![]]);
    assert_eq!(scene.told(BOB, DM_BOB, "gate", 4_000).await, nothing, "it is Ann's");
    for (who, place) in [(ANN, COMMONS), (ANN, DEN), (AN, DEN), (AN, DM_AN), (BOB, COMMONS), (BOB, DM_ANN)] {
        for project in ["gate", "boat", "acme"] {
            assert_eq!(scene.told(who, place, project, 4_000).await, nothing, "{} in {place}", PEOPLE[who].0);
        }
    }
    // The project's own matter comes first, whatever there is room for.
    for tokens in (0..400).step_by(20) {
        let [own, others] = scene.told(ANN, DM_ANN, "gate", tokens).await;
        assert!(others.is_empty() || own == ["marzipan"], "{tokens}: {own:?}, {others:?}");
    }
    look_up_all(&scene.engine).await;
    scene.engine.watch.verdict().unwrap();
    let forget = |what: &Forget| scene.engine.memory.forgetting().forget(what, true).unwrap();
    forget(&Forget::Import(boat.id));
    assert_eq!(scene.told(ANN, DM_ANN, "gate", 4_000).await, [vec!["marzipan"], vec!["cormorant"]]);
    forget(&Forget::Import(gate.id));
    assert_eq!(scene.told(ANN, DM_ANN, "boat", 4_000).await[1], ["cormorant"]);
}

/// A habit that few projects know stays in them.
#[tokio::test]
async fn what_three_projects_have_in_common_comes_first() {
    let scene = Scene::open(false, false).await;
    let convention = "Every test name is a sentence in my code.";
    scene.prefer(ANN, DEFAULT_PERSONA, "loft", "obsidian", "I prefer obsidian to glass.");
    for (project, word) in [("gate", "marzipan"), ("boat", "tangerine"), ("shed", "cormorant")] {
        scene.mark("pattern", ANN, DEFAULT_PERSONA, project, word, convention);
        scene.prefer(ANN, DEFAULT_PERSONA, project, &format!("{word}2"), &format!("I like {word} best."));
    }
    // Two projects are too few.
    for (project, word) in [("gate", "marzipan3"), ("boat", "tangerine3")] {
        scene.mark("pattern", ANN, DEFAULT_PERSONA, project, word, "I swim on Fridays with friends.");
    }
    let (azera, sim) = (&scene.engine.azera, scene.engine.platform.sim.clone());
    let told = async |project: &str| {
        let at = Reading { chat: chat(DM_ANN), person: person(ANN) };
        azera.project_context(sim.id(), at, project.to_owned(), 4_000).await.unwrap().unwrap()
    };
    let text = told("loft").await;
    let others = text.split_once("## From other projects").unwrap().1;
    let is_said = |line: &&str| ["in my code", " best.", "on Fridays"].iter().any(|words| line.contains(words));
    let said: Vec<&str> = others.lines().filter(is_said).collect();
    assert_eq!(said.len(), 4, "{others}");
    assert!(said[0].contains(convention) && said[0].contains(", in 3 projects, m"), "{others}");
    assert!(said[1..].iter().all(|line| line.contains(" best.") && !line.contains("projects")), "{others}");
    let own = told("gate").await;
    let own = own.split_once("## From other projects").unwrap().0;
    assert!(own.contains(convention) && own.contains("on Fridays with friends"), "{own}");
}

/// It is past midnight in Tokyo, and still the day before in UTC.
#[tokio::test]
async fn a_project_is_told_in_the_days_of_the_configured_time_zone() {
    let mut scene = Scene::open(false, false).await;
    let garden = scene.engine.garden.clone();
    scene.engine.tended_by(Gardener { time_zone: "Asia/Tokyo".to_owned(), ..garden }).await;
    for (project, word) in [("gate", "marzipan"), ("boat", "obsidian")] {
        scene.prefer(ANN, DEFAULT_PERSONA, project, word, &format!("I prefer that {word} tests are sentences."));
    }
    let (azera, sim) = (&scene.engine.azera, scene.engine.platform.sim.clone());
    let at = Reading { chat: chat(DM_ANN), person: person(ANN) };
    let text = azera.project_context(sim.id(), at, "gate".to_owned(), 4_000).await.unwrap().unwrap();
    let day = |zone: TimeZone| scene.engine.clock.now().to_zoned(zone).strftime("%F").to_string();
    let (tokyo, utc) = (day(TimeZone::get("Asia/Tokyo").unwrap()), day(TimeZone::UTC));
    assert!(tokyo != utc && !text.contains(&utc), "{text}");
    let (own, others) = text.split_once("## From other projects").unwrap();
    assert!(own.contains("## Commands that work here") && own.matches(&tokyo).count() > 2, "{own}");
    assert_eq!(others.matches(&tokyo).count(), 2, "{others}");
}
