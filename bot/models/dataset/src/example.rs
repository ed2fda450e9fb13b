//! Training examples: a prompt, and the reply to learn.

use std::cmp::Reverse;

use azera_model_api::ChatMessage;
use azera_prompt::{Form, MemoryOrigin, RecalledMemory, form_for};
use serde::{Deserialize, Serialize};

use crate::perspective::question_about;
use crate::sampler::{Sampler, StatedFact, capital, ended, sentences, shared_words};
use crate::scene::{Cast, Scene, recalled};
use crate::seeds::{Fact, SAYINGS, SEEDS, Saying};
use crate::writings::{claim, composition};

/// The kind of a training example.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The answer is in a recalled line.
    Recalled,
    /// Several people said the same kind of thing, and each has their own answer.
    #[serde(rename = "told_apart")]
    Distinguished,
    /// Somebody asks about something that another person said.
    OfAnother,
    /// Two recalled lines disagree, and the newer one holds.
    Newer,
    /// The answer is in the conversation itself.
    InHistory,
    /// The recalled lines are close to the question, but do not answer it.
    Near,
    /// The recalled lines are unrelated, or there are none.
    Unknown,
    /// Somebody tells something, and the persona takes note of it.
    Heard,
    /// The persona is asked for its dreams or writings, and carries one or has none.
    OfItself,
    /// Small talk.
    Talk,
    /// A scene of a dungeon master.
    Scene,
    /// Notes, diary, dreams and other texts between messages.
    Writing,
    /// Prose without a prompt, so that the model does not forget plain language.
    Plain,
    /// The model extracts what somebody says about one thing as JSON.
    Claim,
}

/// The mixture of kinds: the number of examples of each kind in every 112.
pub const SHARES: [(usize, Kind); 14] = [
    (27, Kind::Recalled),
    (5, Kind::Distinguished),
    (6, Kind::OfAnother),
    (3, Kind::Newer),
    (5, Kind::InHistory),
    (13, Kind::Near),
    (10, Kind::Unknown),
    (9, Kind::Heard),
    (3, Kind::OfItself),
    (11, Kind::Talk),
    (2, Kind::Scene),
    (2, Kind::Writing),
    (4, Kind::Plain),
    (12, Kind::Claim),
];

/// The percentage of questions about one of several similar things, among [`Kind::Recalled`] and [`Kind::Near`].
const OF_THINGS_ALIKE: usize = 35;

/// The percentage of unrelated lines that are the closest to the question of [`CANDIDATES`] lines, instead of random.
const CLOSE: usize = 60;

/// See [`CLOSE`].
const CANDIDATES: usize = 8;

/// One training example.
#[derive(Clone, PartialEq)]
pub struct SyntheticExample {
    /// Its kind.
    pub kind: Kind,
    /// The prompt; empty for [`Kind::Plain`].
    pub messages: Vec<ChatMessage>,
    /// The reply to learn.
    pub reply: String,
}

/// Generates `count` training examples in the prompts of a family and a number of weights. `shares` sets the mixture of
/// kinds by numbers relative to their sum ([`SHARES`] is the usual one). Returns none if all shares are 0.
pub fn synthetic_examples(
    (family, parameters): (&str, Option<u64>),
    seed: u64,
    count: usize,
    shares: &[(usize, Kind)],
) -> Vec<SyntheticExample> {
    let form = form_for(family, parameters);
    let cast = Cast::all();
    let mut draw = Sampler::new(seed);
    if shares.iter().all(|(share, _)| *share == 0) {
        return Vec::new();
    }
    let mut examples = Vec::with_capacity(count);
    while examples.len() < count {
        let kind = *weighted(&mut draw, shares);
        examples.extend(example(&mut draw, &form, &cast, kind));
    }
    examples
}

/// Returns prose that [`synthetic_examples`] never contains. It shows how training changes the way a model rates plain
/// text.
pub fn prose_held_out() -> Vec<SyntheticExample> {
    let prose = |text: &&str| SyntheticExample { kind: Kind::Plain, messages: Vec::new(), reply: (*text).to_owned() };
    SEEDS.held_out.iter().map(prose).collect()
}

fn weighted<'a, T>(draw: &mut Sampler, all: &'a [(usize, T)]) -> &'a T {
    let mut place = draw.below(all.iter().map(|(share, _)| share).sum());
    for (share, item) in all {
        if place < *share {
            return item;
        }
        place -= share;
    }
    &all[0].1
}

fn example(draw: &mut Sampler, form: &Form, cast: &[(usize, Cast)], kind: Kind) -> Option<SyntheticExample> {
    let mut player = weighted(draw, cast);
    if kind == Kind::Writing {
        return composition(draw, player);
    }
    if kind == Kind::Plain {
        return Some(SyntheticExample { kind, messages: Vec::new(), reply: (*draw.of(&SEEDS.plain)).to_owned() });
    }
    if kind == Kind::Claim {
        return claim(draw);
    }
    if kind == Kind::Scene {
        player = cast.iter().map(|(_, player)| player).find(|player| player.is_areza())?;
    }
    let mut at = Examples { draw, player, name: player.persona().name.clone(), most: form.recalled_lines };
    let (scene, reply) = match kind {
        Kind::Recalled if at.draw.chance(OF_THINGS_ALIKE) => at.among_alike(true)?,
        Kind::Near if at.draw.chance(OF_THINGS_ALIKE) => at.among_alike(false)?,
        Kind::Recalled | Kind::InHistory => at.answered(kind)?,
        Kind::Distinguished => at.distinguished()?,
        Kind::OfAnother => at.of_another()?,
        Kind::Newer => at.newer()?,
        Kind::Near => at.near()?,
        Kind::Unknown => at.unknown(),
        Kind::Heard => at.heard(),
        Kind::OfItself => at.asked_about_itself(),
        Kind::Talk => at.talk(&SEEDS.talk),
        Kind::Scene => at.talk(&SEEDS.scenes),
        Kind::Writing | Kind::Plain | Kind::Claim => return None,
    };
    Some(SyntheticExample { kind, messages: scene.prompt(form, player.persona())?, reply })
}

/// One training example in the making.
struct Examples<'a> {
    draw: &'a mut Sampler,
    player: &'a Cast,
    name: String,
    /// The most recalled lines.
    most: usize,
}

impl Examples<'_> {
    fn fact(&mut self) -> &'static Fact {
        self.draw.of(&SEEDS.facts)
    }

    /// Starts a scene: one person who has told the persona something, with other things said around it.
    fn begun(&mut self) -> (Scene, StatedFact) {
        let who = self.draw.people(1).remove(0);
        let fact = self.fact();
        let stated = self.draw.stated(fact, &who, std::slice::from_ref(&who));
        let mut scene = Scene { speaker: who, group: self.draw.chance(35), ..Scene::default() };
        self.surround(&mut scene);
        (scene, stated)
    }

    /// Returns the speaker, or in a group sometimes somebody else.
    fn somebody(&mut self, scene: &Scene) -> String {
        if scene.group && self.draw.chance(50) { self.draw.people(1).remove(0) } else { scene.speaker.clone() }
    }

    fn surround(&mut self, scene: &mut Scene) {
        if self.draw.chance(25) {
            scene.history = self.draw.small_talk(&scene.speaker, &self.name);
        }
        // Several facts are told one after another, so that the next reply must answer the last.
        if self.draw.chance(15) {
            for _ in 0..=self.draw.below(3) {
                let who = self.somebody(scene);
                let fact = self.fact();
                let stated = self.draw.stated(fact, &who, std::slice::from_ref(&who));
                let heard = self.hear(&stated);
                scene.history.push((Some(who), stated.text));
                scene.history.push((None, heard));
            }
        }
        if self.draw.chance(6) {
            let about = self.distracting(&scene.speaker.clone(), "");
            let text = format!("{} told me: {}", scene.speaker, ended(&about.text));
            scene.carried.push(RecalledMemory::new(MemoryOrigin::Diary, None, text, about.at));
        }
        if self.draw.chance(6) {
            scene.notes = Some(format!("About {}: I like how open {} is.", scene.speaker, scene.speaker));
        }
    }

    /// Returns a line about something other than `kind`.
    fn distracting(&mut self, who: &str, kind: &str) -> RecalledMemory {
        if self.draw.chance(35) {
            return self.draw.chatter(who);
        }
        if self.draw.chance(35) {
            let saying = self.draw.of(&SAYINGS);
            let said = if saying.name == kind { None } else { self.draw.said(saying, &[]) };
            if let Some(said) = said {
                return self.passing(who, said.text);
            }
        }
        loop {
            let fact = self.fact();
            if fact.kind != kind {
                let stated = self.draw.stated(fact, who, &[who.to_owned()]);
                let mut line = recalled(&stated);
                // A past question is also remembered, and answers nothing.
                if self.draw.chance(15) {
                    line.text = self.ask(&stated);
                }
                return line;
            }
        }
    }

    /// Adds lines that do not answer the question around those that do. Like the product's recall, most of these lines
    /// share words with the scene's message. The best line is mostly, but not always, the first. There are mostly many
    /// lines, and few if one is much better than the rest.
    fn recall(&mut self, scene: &mut Scene, answers: Vec<RecalledMemory>, kind: &str) {
        let most = self.most.saturating_sub(answers.len());
        let count = if self.draw.chance(30) { self.draw.below(3) } else { 3 + self.draw.below(6) }.min(most);
        let mut lines = Vec::new();
        for _ in 0..count {
            let who = self.somebody(scene);
            let candidates = if self.draw.chance(CLOSE) { CANDIDATES } else { 1 };
            let drawn: Vec<RecalledMemory> = (0..candidates).map(|_| self.distracting(&who, kind)).collect();
            lines.extend(drawn.into_iter().max_by_key(|line| shared_words(&line.text, &scene.message)));
        }
        lines.sort_by_key(|line| Reverse(shared_words(&line.text, &scene.message)));
        for answer in answers {
            let place = if self.draw.chance(70) { 0 } else { self.draw.below(lines.len() + 1) };
            lines.insert(place, answer);
        }
        scene.recalled = lines;
    }

    fn ask(&mut self, stated: &StatedFact) -> String {
        let question = stated.fill(self.draw.text(&stated.fact.questions));
        self.draw.typed(&question, &self.name)
    }

    /// Formulates a plain answer in the persona's way.
    fn say(&mut self, bare: &str) -> String {
        let answer = capital(&ended(bare));
        let templates = if self.player.is_areza() { &SEEDS.openers_areza } else { &SEEDS.answers };
        let template = self.draw.of(templates);
        template.replace("{answer}", &answer).replace("{bare}", &ended(bare))
    }

    fn answered(&mut self, kind: Kind) -> Option<(Scene, String)> {
        let (mut scene, stated) = self.begun();
        let bare = stated.fill(stated.fact.answer);
        scene.message = self.ask(&stated);
        if kind == Kind::InHistory {
            let heard = self.hear(&stated);
            scene.history.push((Some(scene.speaker.clone()), stated.text.clone()));
            scene.history.push((None, heard));
            if self.draw.chance(50) {
                let more = self.draw.small_talk(&scene.speaker, &self.name);
                scene.history.extend(more);
            }
            if self.draw.chance(50) {
                self.recall(&mut scene, Vec::new(), stated.fact.kind);
            }
            let reply = capital(&ended(&bare));
            return Some((scene, reply));
        }
        self.recall(&mut scene, vec![recalled(&stated)], stated.fact.kind);
        let reply = self.say(&bare);
        Some((scene, reply))
    }

    /// Returns a remark as a recalled line.
    fn passing(&mut self, who: &str, said: String) -> RecalledMemory {
        let text = self.draw.in_passing(said);
        RecalledMemory::new(MemoryOrigin::Said, Some(who.to_owned()), text, self.draw.time())
    }

    /// The same was said of several things, and the question is about one of them. The lines about the others are no
    /// answer.
    fn among_alike(&mut self, known: bool) -> Option<(Scene, String)> {
        let who = self.draw.people(1).remove(0);
        let askable: Vec<&Saying> = SAYINGS.iter().filter(|saying| !saying.questions.is_empty()).collect();
        let saying = *self.draw.of(&askable);
        let mut taken: Vec<String> = saying.off_topic.iter().map(|&word| word.to_owned()).collect();
        taken.push(who.clone());
        let questions = self.draw.said(saying, &taken)?;
        taken.extend([questions.thing().to_owned(), questions.value.clone()]);
        let mut lines = Vec::new();
        for _ in 0..if known { self.draw.below(3) } else { 1 + self.draw.below(2) } {
            let other = self.draw.said(saying, &taken)?;
            taken.extend([other.thing().to_owned(), other.value.clone()]);
            lines.push(self.passing(&who, other.text));
        }
        let mut scene = Scene { speaker: who.clone(), group: self.draw.chance(35), ..Scene::default() };
        self.surround(&mut scene);
        if known {
            lines.push(self.passing(&who, questions.text.clone()));
        }
        let question = questions.fill(self.draw.text(&saying.questions));
        scene.message = self.draw.typed(&question, &self.name);
        self.recall(&mut scene, lines, saying.name);
        let reply = if known {
            let bare = questions.fill(saying.answer);
            self.say(&bare)
        } else {
            self.not_known(Some(&questions.about))
        };
        Some((scene, reply))
    }

    /// Several people in one place told the same kind of thing, and one of them asks.
    fn distinguished(&mut self) -> Option<(Scene, String)> {
        let people = self.draw.people(3);
        let fact = self.fact();
        let own = self.draw.stated(fact, &people[0], &people);
        let other = self.draw.stated(fact, &people[1], &people);
        let bare = own.fill(fact.answer);
        if other.fill(fact.answer) == bare || other.fill(fact.about) != own.fill(fact.about) {
            return None;
        }
        let mut scene = Scene { group: true, speaker: people[0].clone(), ..Scene::default() };
        let lines = vec![recalled(&other), recalled(&own)];
        scene.message = self.ask(&own);
        self.recall(&mut scene, lines, fact.kind);
        if self.draw.chance(40) {
            scene.history = self.draw.small_talk(&people[2], &self.name);
        }
        let reply = self.say(&bare);
        Some((scene, reply))
    }

    fn of_another(&mut self) -> Option<(Scene, String)> {
        let people = self.draw.people(2);
        let fact = self.fact();
        let stated = self.draw.stated(fact, &people[0], &people);
        let (bare, about) = (stated.of_other()?, stated.about_other()?);
        let mut scene = Scene { group: true, speaker: people[1].clone(), ..Scene::default() };
        let question = stated.fill(self.draw.text(&stated.fact.questions));
        let questions = match question_about(&question, &people[0]) {
            Some(question) if self.draw.chance(75) => question,
            _ => {
                let openings = ["do you know ", "can you tell me ", "remind me ", "did you hear ", "any idea "];
                format!("{}{about}?", self.draw.of(&openings))
            }
        };
        scene.message = self.draw.typed(&questions, &self.name);
        if self.draw.chance(75) {
            self.recall(&mut scene, vec![recalled(&stated)], fact.kind);
            let reply = self.say(&bare);
            return Some((scene, reply));
        }
        self.recall(&mut scene, Vec::new(), fact.kind);
        let reply = self.not_known(Some(&about));
        Some((scene, reply))
    }

    fn newer(&mut self) -> Option<(Scene, String)> {
        let (mut scene, first) = self.begun();
        let second = self.draw.stated(first.fact, &scene.speaker, &[scene.speaker.clone()]);
        let (old, new) = if first.at < second.at { (first, second) } else { (second, first) };
        let bare = new.fill(new.fact.answer);
        if old.fill(old.fact.answer) == bare || old.fill(old.fact.about) != new.fill(new.fact.about) {
            return None;
        }
        scene.message = self.ask(&new);
        self.recall(&mut scene, vec![recalled(&old), recalled(&new)], new.fact.kind);
        let reply = self.say(&bare);
        Some((scene, reply))
    }

    fn near(&mut self) -> Option<(Scene, String)> {
        let (mut scene, stated) = self.begun();
        let question = stated.fill(self.draw.text(&stated.fact.near));
        scene.message = self.draw.typed(&question, &self.name);
        self.recall(&mut scene, vec![recalled(&stated)], stated.fact.kind);
        let reply = self.not_known(None);
        Some((scene, reply))
    }

    fn unknown(&mut self) -> (Scene, String) {
        let (mut scene, stated) = self.begun();
        scene.message = self.ask(&stated);
        if self.draw.chance(70) {
            self.recall(&mut scene, Vec::new(), stated.fact.kind);
        }
        let about = stated.fill(stated.fact.about);
        let reply = self.not_known(Some(&about));
        (scene, reply)
    }

    /// Says plainly that something is not known, and names it if possible.
    fn not_known(&mut self, about: Option<&str>) -> String {
        let all = if self.player.is_areza() { &SEEDS.unknown_areza } else { &SEEDS.unknown };
        loop {
            let template = self.draw.of(all);
            match about {
                Some(about) => return template.replace("{what}", about),
                None if !template.contains("{what}") => return (*template).to_owned(),
                None => {}
            }
        }
    }

    /// Returns the reply to a statement: mostly a direct reaction, sometimes the statement repeated plainly.
    fn hear(&mut self, stated: &StatedFact) -> String {
        if !stated.fact.heard.is_empty() && self.draw.chance(90) {
            return sentences(&stated.fill(self.draw.text(&stated.fact.heard)));
        }
        self.draw.of(&SEEDS.heard).replace("{bare}", &ended(&stated.fill(stated.fact.answer)))
    }

    fn heard(&mut self) -> (Scene, String) {
        let (mut scene, stated) = self.begun();
        scene.message = self.draw.typed(&stated.text, &self.name);
        if self.draw.chance(75) {
            self.recall(&mut scene, Vec::new(), stated.fact.kind);
        }
        let reply = self.hear(&stated);
        (scene, reply)
    }

    /// Asks for a dream or writing of the persona, which stands before the conversation. Without one, the persona says
    /// so.
    fn asked_about_itself(&mut self) -> (Scene, String) {
        let (mut scene, stated) = self.begun();
        scene.carried.clear();
        let dreams = self.draw.chance(70);
        let about = self.wrote(dreams);
        let answered = self.draw.chance(85);
        if answered {
            scene.carried.push(about.clone());
        }
        if self.draw.chance(50) {
            let other = self.wrote(!dreams);
            let place = self.draw.below(scene.carried.len() + 1);
            scene.carried.insert(place, other);
        }
        let (questions, nothing) =
            if dreams { (&SEEDS.dream_questions, &SEEDS.no_dream) } else { (&SEEDS.diary_questions, &SEEDS.no_diary) };
        let questions = self.draw.text(questions);
        scene.message = self.draw.typed(&questions.replace("{persona}", &self.name), &self.name);
        if self.draw.chance(70) {
            self.recall(&mut scene, Vec::new(), stated.fact.kind);
        }
        let reply = if answered {
            about.text.split_inclusive(". ").next().unwrap_or_default().trim_end().to_owned()
        } else {
            self.draw.text(nothing).to_owned()
        };
        (scene, reply)
    }

    /// Returns a dream or an entry of the diary.
    fn wrote(&mut self, dreams: bool) -> RecalledMemory {
        let (came, texts) =
            if dreams { (MemoryOrigin::Dreamt, &SEEDS.dreams) } else { (MemoryOrigin::Diary, &SEEDS.diary) };
        let text = self.draw.text(texts);
        RecalledMemory::new(came, None, sentences(&self.draw.filled(text)), self.draw.time())
    }

    fn talk(&mut self, exchanges: &'static [crate::seeds::Exchange]) -> (Scene, String) {
        let who = self.draw.people(1).remove(0);
        let mut scene = Scene { speaker: who, group: self.draw.chance(35), ..Scene::default() };
        self.surround(&mut scene);
        // Only one person talks in a dungeon master's scene.
        let exchange = self.draw.of(exchanges);
        scene.message = self.draw.typed(&exchange.said.replace("{persona}", &self.name), &self.name);
        if self.draw.chance(60) {
            self.recall(&mut scene, Vec::new(), "");
        }
        let reply = self.draw.of(&exchange.answers).replace("{persona}", &self.name);
        (scene, reply)
    }
}
