//! One scene and several questions to it. What is recalled stays the same, so that the question alone tells a right answer from a
//! wrong one, and from what is not known; and what the prompts share is computed once where they are learnt together.

use azera_prompt::{Came, Recollection, form_for};

use crate::draw::{Draw, Told};
use crate::lesson::{Kind, Lesson, Lessons, lesson, weighted};
use crate::other::asked_about;
use crate::seeds::Fact;
use crate::stage::{Cast, Scene, recalled};

/// Kinds of which a scene is asked several.
const OF_A_SCENE: [Kind; 6] =
    [Kind::Recalled, Kind::ToldApart, Kind::OfAnother, Kind::Newer, Kind::Near, Kind::Unknown];

/// Questions drawn for a lesson before the scene is given up: few scenes hold many different ones.
const TRIES: usize = 12;

/// Lessons like [`crate::lessons`], in blocks of `together`: questions to one scene, in a mixture of their own, or as many of other
/// kinds. Shares tell how many of the blocks are questions, and how many of the others are of which kind.
pub fn lessons_together(
    family: &str,
    seed: u64,
    count: usize,
    shares: &[(usize, Kind)],
    together: usize,
) -> Vec<Lesson> {
    let form = form_for(family);
    let cast = Cast::all();
    let mut draw = Draw::new(seed);
    let others: Vec<_> = shares.iter().copied().filter(|(_, kind)| !OF_A_SCENE.contains(kind)).collect();
    let mut lessons = Vec::with_capacity(count);
    if shares.iter().all(|(share, _)| *share == 0) {
        return lessons;
    }
    while lessons.len() < count {
        if OF_A_SCENE.contains(weighted(&mut draw, shares)) {
            let player = weighted(&mut draw, &cast);
            let mut at = Lessons { draw: &mut draw, player, name: player.persona().name.clone() };
            let Some(asked) = at.asked(together) else { continue };
            let prompts = asked.into_iter().filter_map(|(kind, scene, reply)| {
                Some(Lesson { kind, messages: scene.prompt(&form, player.persona())?, reply })
            });
            lessons.extend(prompts);
        } else {
            let end = lessons.len() + together;
            while lessons.len() < end {
                let kind = *weighted(&mut draw, &others);
                lessons.extend(lesson(&mut draw, &form, &cast, kind));
            }
        }
    }
    lessons.truncate(count);
    lessons
}

/// A question to a scene.
struct Question {
    kind: Kind,
    /// What is asked, whatever stands around it.
    asked: String,
    message: String,
    reply: String,
}

/// What was told in a scene; the first is what stands nearest to the message, as a rule.
struct Held {
    told: Vec<Told>,
    /// Somebody else who told things there, or did not.
    other: String,
}

impl Held {
    fn fact(&self, place: usize) -> &'static Fact {
        self.told[place].fact
    }

    /// The last word of somebody on a kind of thing.
    fn newest(&self, fact: &Fact, who: &str) -> Option<&Told> {
        let of_it = self.told.iter().filter(|told| told.fact.kind == fact.kind && told.who == who);
        of_it.max_by_key(|told| told.at)
    }
}

impl Lessons<'_> {
    /// Several different questions to one scene: most of them about the line that is recalled as the best.
    fn asked(&mut self, count: usize) -> Option<Vec<(Kind, Scene, String)>> {
        let (scene, held) = self.told_in_a_scene()?;
        let mut all: Vec<Question> = Vec::with_capacity(count);
        for number in 0..count {
            let new = (0..TRIES).find_map(|_| {
                let new = self.question(number, &scene.speaker, &held)?;
                (!all.iter().any(|before| before.asked == new.asked)).then_some(new)
            });
            all.push(new?);
        }
        let of_scene = |Question { kind, message, reply, .. }| (kind, Scene { message, ..scene.clone() }, reply);
        Some(all.into_iter().map(of_scene).collect())
    }

    /// A scene in which things were told, some of them twice or by two.
    fn told_in_a_scene(&mut self) -> Option<(Scene, Held)> {
        let people = self.draw.people(2);
        let mut scene = Scene { speaker: people[0].clone(), group: self.draw.chance(40), ..Scene::default() };
        self.surround(&mut scene);
        let teller = |it: &mut Self, own: usize| {
            let own = !scene.group || it.draw.chance(own);
            people[usize::from(!own)].clone()
        };
        let fact = self.fact();
        let first = teller(self, 75);
        let mut told = vec![self.draw.told(fact, &first, &people)];
        let again = if self.draw.chance(12) {
            Some(first)
        } else {
            (scene.group && self.draw.chance(50)).then(|| people[usize::from(first == people[0])].clone())
        };
        if let Some(who) = again {
            let again = self.draw.told(fact, &who, &people);
            let same = again.fill(fact.answer) == told[0].fill(fact.answer);
            if same || again.fill(fact.about) != told[0].fill(fact.about) || again.at == told[0].at {
                return None;
            }
            told.push(again);
        }
        let mut lines: Vec<Recollection> = told.iter().map(recalled).collect();
        let (least, more) = if self.draw.chance(40) { (0, 3) } else { (2, 6) };
        for _ in 0..least + self.draw.below(more) {
            let who = teller(self, 60);
            if self.draw.chance(30) {
                lines.push(self.draw.chatter(&who));
                continue;
            }
            let fact = self.fact();
            if told.iter().any(|it| it.fact.kind == fact.kind) {
                continue;
            }
            let more = self.draw.told(fact, &who, &people);
            if self.draw.chance(12) {
                // What was asked is remembered, too, and answers nothing.
                let text = self.ask(&more);
                lines.push(Recollection { came: Came::Said, speaker: Some(who), text, at: more.at });
            } else {
                lines.push(recalled(&more));
                told.push(more);
            }
        }
        if !self.draw.chance(70) {
            self.draw.shuffle(&mut lines);
        }
        scene.recalled = lines;
        Some((scene, Held { told, other: people[1].clone() }))
    }

    /// The question of this number, and the answer: what was told first, what else was told, what is close to it, and what is
    /// not known or told as well; and from the beginning again.
    fn question(&mut self, number: usize, asker: &str, held: &Held) -> Option<Question> {
        let any = self.draw.below(held.told.len());
        match number % 4 {
            0 => self.question_answered(held, 0, asker),
            1 if self.draw.chance(65) => self.question_answered(held, any, asker),
            1 => self.question_answered(held, 0, asker),
            2 if self.draw.chance(65) => Some(self.question_beside(held, 0, asker)),
            2 => Some(self.question_beside(held, any, asker)),
            _ if self.draw.chance(60) => Some(self.question_unknown(held)),
            _ => self.question_answered(held, any, asker),
        }
    }

    /// Asks for what was told, as the one who asks asks for it.
    fn question_answered(&mut self, held: &Held, place: usize, asker: &str) -> Option<Question> {
        let (told, fact) = (&held.told[place], held.fact(place));
        let question = told.fill(self.draw.text(&fact.asked));
        if told.who != asker {
            let message = self.asked_of(&question, told)?;
            let reply = self.say(&held.newest(fact, &told.who)?.of_other()?);
            let asked = format!("{} of {}", fact.kind, told.who);
            return Some(Question { kind: Kind::OfAnother, asked, message, reply });
        }
        let bare = held.newest(fact, asker)?.fill(fact.answer);
        let times = held.told.iter().filter(|it| it.fact.kind == fact.kind);
        let kind = match times.clone().count() {
            1 => Kind::Recalled,
            _ if times.clone().all(|it| it.who == asker) => Kind::Newer,
            _ => Kind::ToldApart,
        };
        Some(self.asking(kind, question, |it| it.say(&bare)))
    }

    /// Asks for something beside what was told: something else about it, or the same of oneself where another one told it.
    fn question_beside(&mut self, held: &Held, place: usize, asker: &str) -> Question {
        let told = &held.told[place];
        if held.newest(told.fact, asker).is_none() && self.draw.chance(60) {
            let about = told.fill(told.fact.about);
            let question = told.fill(self.draw.text(&told.fact.asked));
            return self.asking(Kind::ToldApart, question, |it| it.not_known(Some(&about)));
        }
        let question = told.fill(self.draw.text(&told.fact.near));
        self.asking(Kind::Near, question, |it| it.not_known(None))
    }

    fn asking(&mut self, kind: Kind, asked: String, reply: impl FnOnce(&mut Self) -> String) -> Question {
        let message = self.draw.typed(&asked, &self.name);
        Question { kind, asked, message, reply: reply(self) }
    }

    /// Asks for something of which nothing was told, of oneself or of somebody else.
    fn question_unknown(&mut self, held: &Held) -> Question {
        loop {
            let fact = self.fact();
            if held.told.iter().any(|told| told.fact.kind == fact.kind) {
                continue;
            }
            let of_other = self.draw.chance(20);
            let nothing = self.draw.told(fact, &held.other, std::slice::from_ref(&held.other));
            let question = nothing.fill(self.draw.text(&fact.asked));
            if !of_other {
                let about = nothing.fill(fact.about);
                return self.asking(Kind::Unknown, question, |it| it.not_known(Some(&about)));
            }
            if let (Some(message), Some(about)) = (self.asked_of(&question, &nothing), nothing.about_other()) {
                let reply = self.not_known(Some(&about));
                return Question { kind: Kind::Unknown, asked: question, message, reply };
            }
        }
    }

    /// A question about what another one told.
    pub(crate) fn asked_of(&mut self, question: &str, told: &Told) -> Option<String> {
        let about = told.about_other()?;
        let asked = match asked_about(question, &told.who) {
            Some(question) if self.draw.chance(75) => question,
            _ => {
                let openings = ["do you know ", "can you tell me ", "remind me ", "did you hear ", "any idea "];
                format!("{}{about}?", self.draw.of(&openings))
            }
        };
        Some(self.draw.typed(&asked, &self.name))
    }
}
