//! Tells which mentions mean the same: by name, short form, statements, company and recency. Nothing is guessed away: a
//! name that could mean two keeps to itself where nothing speaks for one of them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use azera_types::{ChatId, PersonId, Timestamp};

use super::extract::Node;
use super::lexicon;

/// Confidence that a name means the only one that it can stand for.
const ONLY_ONE: f32 = 0.85;

/// Confidence that a name means one of several, by company or recency.
const CHOSEN: f32 = 0.6;

/// Confidence of a name that could mean several, and stays apart.
const UNDECIDED: f32 = 0.5;

/// Weight of each name that a mention and a candidate are both named beside.
const COMPANY: f32 = 2.0;

/// Weight of a candidate that was named just before in the same chat.
const RECENT: f32 = 1.5;

/// Days after which a mention in the same chat counts half.
const RECENT_DAYS: f32 = 2.0;

/// Weight of a candidate whom the same author named before.
const SAME_AUTHOR: f32 = 0.5;

/// A mention with what tells whom it means.
#[derive(Debug, Clone)]
pub(super) struct Seen<'a> {
    pub(super) node: &'a Node,
    pub(super) author: Option<&'a PersonId>,
    pub(super) chat: Option<&'a ChatId>,
    pub(super) at: Timestamp,
    /// The other nodes of the same memory that a relation or a sentence joins with it.
    pub(super) beside: Vec<&'a Node>,
}

/// A statement that two names mean the same, or do not.
#[derive(Debug, Clone)]
pub(super) struct Stated<'a> {
    pub(super) one: &'a str,
    pub(super) other: &'a str,
    pub(super) is_same: bool,
    pub(super) at: Timestamp,
}

/// What a mention means: a node that stands for all nodes of the same entity.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Resolved {
    pub(super) entity: Node,
    pub(super) confidence: f32,
}

/// Returns what each mention means, in the order of `seen`.
pub(super) fn resolve(seen: &[Seen<'_>], stated: &[Stated<'_>]) -> Vec<Resolved> {
    let resolver = Resolver::new(seen, stated);
    seen.iter().map(|mention| resolver.means(mention)).collect()
}

/// Returns two names in a fixed order.
fn pair<'a>(one: &'a str, other: &'a str) -> (&'a str, &'a str) {
    if one <= other { (one, other) } else { (other, one) }
}

struct Resolver<'a> {
    seen: &'a [Seen<'a>],
    /// The mentions of each node, by their numbers.
    by_node: BTreeMap<&'a Node, Vec<usize>>,
    /// The newest statement about each pair of names.
    stated: HashMap<(&'a str, &'a str), bool>,
    /// The node under which a person is known last.
    people: HashMap<&'a PersonId, &'a Node>,
}

impl<'a> Resolver<'a> {
    fn new(seen: &'a [Seen<'a>], stated: &[Stated<'a>]) -> Self {
        let mut by_node: BTreeMap<&Node, Vec<usize>> = BTreeMap::new();
        let mut people: HashMap<&PersonId, (Timestamp, &Node)> = HashMap::new();
        for (number, mention) in seen.iter().enumerate() {
            by_node.entry(mention.node).or_default().push(number);
            if let Some(person) = &mention.node.person {
                let newest = people.entry(person).or_insert((mention.at, mention.node));
                if mention.at >= newest.0 {
                    *newest = (mention.at, mention.node);
                }
            }
        }
        let mut ordered: Vec<&Stated<'_>> = stated.iter().collect();
        ordered.sort_by_key(|stated| stated.at);
        let stated = ordered.into_iter().map(|it| (pair(it.one, it.other), it.is_same)).collect();
        Self { seen, by_node, stated, people: people.into_iter().map(|(id, (_, node))| (id, node)).collect() }
    }

    fn means(&self, mention: &Seen<'a>) -> Resolved {
        let (node, confidence) = self.chosen(mention, self.known_as(mention.node));
        let entity = self.joined(node);
        Resolved { entity: entity.clone(), confidence }
    }

    /// Returns the node that stands for a person under all their names, or the node itself.
    fn known_as(&self, node: &'a Node) -> &'a Node {
        node.person.as_ref().and_then(|person| self.people.get(person)).copied().unwrap_or(node)
    }

    /// Returns the node that a mention means before statements join any, and how surely.
    fn chosen(&self, mention: &Seen<'a>, node: &'a Node) -> (&'a Node, f32) {
        if node.person.is_some() {
            return (node, 1.0);
        }
        let candidates = self.candidates(mention, node);
        match candidates.as_slice() {
            [] => (node, 1.0),
            [only] => (only, ONLY_ONE),
            several => {
                let mut scored: Vec<(f32, &Node)> =
                    several.iter().map(|candidate| (self.score(mention, candidate), *candidate)).collect();
                scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
                match scored.as_slice() {
                    [(best, node), (second, _), ..] if best > second => (node, CHOSEN),
                    _ => (node, UNDECIDED),
                }
            }
        }
    }

    /// Returns the nodes that a name may stand for besides itself, each person once.
    fn candidates(&self, mention: &Seen<'a>, node: &'a Node) -> Vec<&'a Node> {
        let mut found: BTreeSet<&Node> = BTreeSet::new();
        for other in self.by_node.keys().copied().filter(|other| *other != node) {
            let is_author = other.person.is_some() && other.person.as_ref() == mention.author;
            let fits = other.name == node.name && other.person.is_some() || is_short_of(&node.name, &other.name);
            if fits && !is_author && self.stated.get(&pair(&node.name, &other.name)) != Some(&false) {
                found.insert(self.known_as(other));
            }
        }
        // Whoever is named beside the longer name is somebody else.
        let apart = |other: &&Node| {
            self.by_node.get(node).is_some_and(|own| own.iter().any(|number| self.is_beside(*number, other)))
        };
        found.retain(|other| !apart(other));
        // A longer name may itself mean a person who speaks under that name.
        let people: HashSet<&str> =
            found.iter().filter(|other| other.person.is_some()).map(|other| other.name.as_str()).collect();
        found.into_iter().filter(|other| other.person.is_some() || !people.contains(other.name.as_str())).collect()
    }

    fn is_beside(&self, number: usize, other: &Node) -> bool {
        self.seen.get(number).is_some_and(|mention| mention.beside.iter().any(|beside| **beside == *other))
    }

    fn score(&self, mention: &Seen<'a>, candidate: &Node) -> f32 {
        let (mut company, mut recent, mut author): (HashSet<&Node>, f32, bool) = (HashSet::new(), 0.0, false);
        for number in self.by_node.get(candidate).into_iter().flatten() {
            let Some(other) = self.seen.get(*number) else { continue };
            company.extend(other.beside.iter().filter(|beside| mention.beside.contains(beside)));
            if other.chat == mention.chat && other.at <= mention.at {
                let days = mention.at.duration_since(other.at).as_secs_f32() / 86_400.0;
                recent = recent.max(RECENT * 0.5_f32.powf(days / RECENT_DAYS));
            }
            author |= other.author == mention.author && mention.author.is_some();
        }
        COMPANY * company.len() as f32 + recent + if author { SAME_AUTHOR } else { 0.0 }
    }

    /// Returns the node that stands for all that statements join with `node`: the person among them, or the first.
    fn joined(&self, node: &'a Node) -> &'a Node {
        let mut names: BTreeSet<&str> = BTreeSet::from([node.name.as_str()]);
        loop {
            let before = names.len();
            for ((one, other), is_same) in &self.stated {
                if *is_same && (names.contains(one) || names.contains(other)) {
                    names.extend([*one, *other]);
                }
            }
            if names.len() == before {
                break;
            }
        }
        if names.len() == 1 {
            return node;
        }
        let mut nodes = self.by_node.keys().copied().filter(|other| names.contains(other.name.as_str()));
        let own = node.person.as_ref().map(|_| node);
        own.or_else(|| nodes.clone().find(|other| other.person.is_some()).map(|other| self.known_as(other)))
            .or_else(|| nodes.next())
            .unwrap_or(node)
    }
}

/// Returns true if a name may be a shorter form of a longer one: its first words, its last word, or a short form of its
/// first word.
pub(super) fn is_short_of(short: &str, long: &str) -> bool {
    if short == long {
        return false;
    }
    let (first, last) = (long.split(' ').next().unwrap_or_default(), long.rsplit(' ').next().unwrap_or_default());
    let begins = long.strip_prefix(short).is_some_and(|rest| rest.starts_with(' '));
    let is_family = long.contains(' ') && !short.contains(' ') && short == last && !long.contains(" of ");
    begins || is_family || lexicon::is_short_for(short, first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hour: i64) -> Timestamp {
        Timestamp::from_second(hour * 3_600).unwrap()
    }

    fn person(name: &str) -> Node {
        Node { name: name.into(), person: Some(PersonId::new(format!("id of {name}")).unwrap()) }
    }

    /// Resolves names said one hour after another in one chat, with the names beside each.
    fn meaning(said: &[(&Node, &[&Node])], stated: &[(&str, &str, bool)]) -> Vec<(String, f32)> {
        let chat = ChatId::new("chat").unwrap();
        let seen: Vec<Seen<'_>> = (0..)
            .zip(said)
            .map(|(hour, (node, beside))| Seen {
                node,
                author: None,
                chat: Some(&chat),
                at: at(hour),
                beside: beside.to_vec(),
            })
            .collect();
        let stated: Vec<Stated<'_>> = (0..)
            .zip(stated)
            .map(|(hour, (one, other, is_same))| Stated { one, other, is_same: *is_same, at: at(hour) })
            .collect();
        resolve(&seen, &stated).into_iter().map(|it| (it.entity.name, it.confidence)).collect()
    }

    #[test]
    fn a_short_name_means_the_only_longer_one() {
        let [ann, smith, mel, melanie] = ["ann", "ann smith", "mel", "melanie"].map(Node::named);
        let found = meaning(&[(&smith, &[]), (&ann, &[]), (&mel, &[]), (&melanie, &[])], &[]);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["ann smith", "ann smith", "melanie", "melanie"]);
        assert_eq!(found[1].1, ONLY_ONE);
    }

    #[test]
    fn of_two_longer_names_company_and_recency_choose() {
        let [ann, smith, jones, oslo, rome] = ["ann", "ann smith", "ann jones", "oslo", "rome"].map(Node::named);
        let found = meaning(&[(&smith, &[&oslo]), (&jones, &[&rome]), (&ann, &[&oslo]), (&ann, &[])], &[]);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["ann smith", "ann jones", "ann smith", "ann jones"]);
    }

    #[test]
    fn names_that_stand_side_by_side_are_two() {
        let [ann, smith] = ["ann", "ann smith"].map(Node::named);
        let found = meaning(&[(&smith, &[&ann]), (&ann, &[&smith])], &[]);
        assert_eq!(found.into_iter().map(|(name, _)| name).collect::<Vec<_>>(), ["ann smith", "ann"]);
    }

    #[test]
    fn the_newest_statement_joins_or_separates() {
        let [ann, smith, nan] = ["ann", "ann smith", "nan"].map(Node::named);
        let said: [(&Node, &[&Node]); 3] = [(&smith, &[]), (&ann, &[]), (&nan, &[])];
        let names = |stated: &[(&str, &str, bool)]| {
            let found = meaning(&said, stated);
            found.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(&[("nan", "ann smith", true)]), ["ann smith", "ann smith", "ann smith"]);
        assert_eq!(names(&[("ann", "ann smith", false)]), ["ann smith", "ann", "nan"]);
        assert_eq!(names(&[("nan", "ann", true), ("ann", "nan", false)]), ["ann smith", "ann smith", "nan"]);
    }

    #[test]
    fn the_person_who_speaks_under_a_name_is_meant_by_it() {
        let (ann, speaker) = (Node::named("ann"), person("ann"));
        let found = meaning(&[(&speaker, &[]), (&ann, &[])], &[]);
        assert_eq!(found[1], ("ann".to_owned(), ONLY_ONE));
        let (ann, lee) = (Node::named("ann"), person("ann lee"));
        assert_eq!(meaning(&[(&lee, &[]), (&ann, &[])], &[])[1].0, "ann lee");
    }
}
