//! Tells which mentions mean the same: by name, short form, statements, company and recency. Nothing is guessed away: a
//! name that could mean two keeps to itself where nothing speaks for one of them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use azera_types::{ChatId, PersonId, Timestamp};

use super::extract::Node;
use super::joins::Joins;
use super::lexicon;

/// Most nodes that one name may stand for. A name that could mean more stays apart. So the work for a mention has a
/// limit, and that for all of them grows with their number alone.
const MAX_CANDIDATES: usize = 32;

/// Most statements about names that count: the newest ones.
const MAX_STATED: usize = 2_048;

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

/// What is said around the mentions of a node.
#[derive(Debug, Default)]
struct Company<'a> {
    /// The nodes that stand beside it.
    beside: HashSet<&'a Node>,
    authors: HashSet<&'a PersonId>,
    /// The moments at which each chat names it, in order.
    named: HashMap<Option<&'a ChatId>, Vec<Timestamp>>,
}

impl<'a> Company<'a> {
    fn add(&mut self, mention: &Seen<'a>) {
        self.beside.extend(&mention.beside);
        self.authors.extend(mention.author);
        self.named.entry(mention.chat).or_default().push(mention.at);
    }

    /// Returns the last moment up to `at` at which a chat names the node.
    fn last_named(&self, chat: Option<&ChatId>, at: Timestamp) -> Option<Timestamp> {
        let moments = self.named.get(&chat)?;
        let before = moments.partition_point(|moment| *moment <= at);
        moments.get(before.checked_sub(1)?).copied()
    }
}

/// Tells what mentions mean. Everything that is the same for two mentions is computed once.
struct Resolver<'a> {
    nodes: BTreeMap<&'a Node, Company<'a>>,
    /// The newest statement about each pair of names.
    stated: HashMap<(&'a str, &'a str), bool>,
    /// The node under which a person is known last.
    people: HashMap<&'a PersonId, &'a Node>,
    /// What each name without a person may stand for besides itself, as far as that is the same for all who say it.
    candidates: HashMap<&'a Node, Vec<&'a Node>>,
    /// The names that statements join, and the node that stands for each group: the first person, or the first node.
    joins: Joins<&'a str>,
    first: HashMap<usize, &'a Node>,
}

impl<'a> Resolver<'a> {
    fn new(seen: &[Seen<'a>], stated: &[Stated<'a>]) -> Self {
        let mut nodes: BTreeMap<&Node, Company<'_>> = BTreeMap::new();
        let mut people: HashMap<&PersonId, (Timestamp, &Node)> = HashMap::new();
        for mention in seen {
            nodes.entry(mention.node).or_default().add(mention);
            if let Some(person) = &mention.node.person {
                let newest = people.entry(person).or_insert((mention.at, mention.node));
                if mention.at >= newest.0 {
                    *newest = (mention.at, mention.node);
                }
            }
        }
        nodes.values_mut().flat_map(|company| company.named.values_mut()).for_each(|moments| moments.sort());
        let people = people.into_iter().map(|(id, (_, node))| (id, node)).collect();
        let mut ordered: Vec<&Stated<'_>> = stated.iter().collect();
        ordered.sort_by_key(|stated| stated.at);
        let newest = ordered.into_iter().rev().take(MAX_STATED).rev();
        let stated: HashMap<(&str, &str), bool> = newest.map(|it| (pair(it.one, it.other), it.is_same)).collect();
        let same = stated.iter().filter(|((one, other), is_same)| **is_same && one != other);
        let joins = Joins::new(same.map(|(pair, _)| *pair));
        let mut resolver = Self { nodes, stated, people, candidates: HashMap::new(), joins, first: HashMap::new() };
        resolver.candidates = resolver.all_candidates();
        resolver.first = resolver.first_of_groups();
        resolver
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
        let candidates = self.candidates.get(node).into_iter().flatten().copied();
        // Nobody means themselves by a name.
        let others = |other: &&Node| other.person.is_none() || other.person.as_ref() != mention.author;
        let candidates: Vec<&Node> = candidates.filter(others).collect();
        if candidates.len() > MAX_CANDIDATES {
            return (node, UNDECIDED);
        }
        // A longer name may itself mean a person who speaks under that name.
        let people: HashSet<&str> =
            candidates.iter().filter(|other| other.person.is_some()).map(|other| other.name.as_str()).collect();
        let is_apart = |other: &&Node| other.person.is_some() || !people.contains(other.name.as_str());
        match candidates.into_iter().filter(is_apart).collect::<Vec<_>>().as_slice() {
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

    /// Returns the nodes that each name may stand for, each person once. Beyond [`MAX_CANDIDATES`] it holds two more: one
    /// may be the author of a mention.
    fn all_candidates(&self) -> HashMap<&'a Node, Vec<&'a Node>> {
        let mut by_first: HashMap<&str, Vec<&Node>> = HashMap::new();
        let mut by_last: HashMap<&str, Vec<&Node>> = HashMap::new();
        for node in self.nodes.keys() {
            let (first, last) = ends(&node.name);
            by_first.entry(first).or_default().push(node);
            by_last.entry(last).or_default().push(node);
        }
        let of = |(node, company): (&&'a Node, &Company<'_>)| {
            let full = lexicon::full_forms(&node.name).iter().filter_map(|full| by_first.get(full)).flatten();
            let family = by_last.get(node.name.as_str()).into_iter().flatten();
            let longer = self.from(&node.name, "").chain(self.from(&node.name, " "));
            let mut found: BTreeSet<&Node> = BTreeSet::new();
            for other in longer.chain(full.copied()).chain(family.copied()) {
                let is_person = other.name == node.name && other.person.is_some();
                let fits = is_person || is_short_of(&node.name, &other.name);
                let other_known = self.known_as(other);
                let is_different = self.stated.get(&pair(&node.name, &other.name)) == Some(&false);
                // Whoever is named beside the longer name is somebody else.
                if fits && !is_different && !company.beside.contains(other_known) {
                    found.insert(other_known);
                }
            }
            (*node, found.into_iter().take(MAX_CANDIDATES + 2).collect())
        };
        self.nodes.iter().filter(|(node, _)| node.person.is_none()).map(of).collect()
    }

    /// Returns the nodes called `name`, or those whose name goes on after `name` and a space.
    fn from(&self, name: &str, behind: &'static str) -> impl Iterator<Item = &'a Node> {
        let start = format!("{name}{behind}");
        let nodes = self.nodes.range::<Node, _>(Node::named(start.clone())..).map(|(node, _)| *node);
        nodes.take_while(move |node| match behind {
            "" => node.name == start,
            _ => node.name.starts_with(&start),
        })
    }

    fn score(&self, mention: &Seen<'a>, candidate: &Node) -> f32 {
        let Some(other) = self.nodes.get(candidate) else { return 0.0 };
        let company: HashSet<&&Node> = mention.beside.iter().filter(|beside| other.beside.contains(*beside)).collect();
        let recent = other.last_named(mention.chat, mention.at).map_or(0.0, |at| {
            let days = mention.at.duration_since(at).as_secs_f32() / 86_400.0;
            RECENT * 0.5_f32.powf(days / RECENT_DAYS)
        });
        let author = mention.author.is_some_and(|author| other.authors.contains(author));
        COMPANY * company.len() as f32 + recent + if author { SAME_AUTHOR } else { 0.0 }
    }

    /// Returns the node that stands for each group of joined names.
    fn first_of_groups(&self) -> HashMap<usize, &'a Node> {
        let mut first: HashMap<usize, &Node> = HashMap::new();
        for node in self.nodes.keys() {
            let Some(group) = self.joins.group(node.name.as_str()) else { continue };
            let known = first.entry(group).or_insert(self.known_as(node));
            if known.person.is_none() && node.person.is_some() {
                *known = self.known_as(node);
            }
        }
        first
    }

    /// Returns the node that stands for all that statements join with `node`; a person stands for themselves.
    fn joined(&self, node: &'a Node) -> &'a Node {
        let group = self.joins.group(node.name.as_str()).filter(|_| node.person.is_none());
        group.and_then(|group| self.first.get(&group)).copied().unwrap_or(node)
    }
}

/// Returns the first and the last word of a name.
fn ends(name: &str) -> (&str, &str) {
    (name.split(' ').next().unwrap_or_default(), name.rsplit(' ').next().unwrap_or_default())
}

/// Returns true if a name may be a shorter form of a longer one: its first words, its last word, or a short form of its
/// first word.
pub(super) fn is_short_of(short: &str, long: &str) -> bool {
    if short == long {
        return false;
    }
    let (first, last) = ends(long);
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
    fn a_name_that_could_mean_too_many_stays_apart() {
        let ann = Node::named("ann");
        let longer =
            |count: usize| (0..count).map(|number| Node::named(format!("ann lee{number}"))).collect::<Vec<_>>();
        let meant = |longer: &[Node]| {
            let said: Vec<(&Node, &[&Node])> = longer.iter().chain([&ann]).map(|node| (node, [].as_slice())).collect();
            meaning(&said, &[]).pop().unwrap()
        };
        assert_eq!(meant(&longer(MAX_CANDIDATES)), (format!("ann lee{}", MAX_CANDIDATES - 1), CHOSEN));
        assert_eq!(meant(&longer(MAX_CANDIDATES + 1)), ("ann".to_owned(), UNDECIDED));
        assert_eq!(meant(&longer(MAX_CANDIDATES + 100)), ("ann".to_owned(), UNDECIDED));
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
