//! The English words of relations, and the words that are no names. They are data: `relations` and `mentions` know no
//! word by themselves.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::read::EntityKind;

/// A role that somebody or something has for an owner, such as `sister`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Role {
    /// The word that stands for all spellings.
    pub(super) label: &'static str,
    pub(super) kind: EntityKind,
}

/// Each line: the label, then other words for it.
const PEOPLE: &str = "mother mom mum mama mommy mummy
father dad papa daddy
parent
sister sis
brother bro
sibling
twin
son
daughter
child kid baby toddler
husband hubby
wife
spouse
partner
boyfriend
girlfriend
fiancé fiancée fiance fiancee
cousin
aunt auntie aunty
uncle
niece
nephew
grandmother grandma granny nana
grandfather grandpa granddad
grandson
granddaughter
mother-in-law
father-in-law
sister-in-law
brother-in-law
stepmother stepmom
stepfather stepdad
stepsister
stepbrother
godmother
godfather
friend bestie buddy pal mate
colleague coworker co-worker workmate
boss manager supervisor
employee
assistant
teacher tutor
professor
coach trainer
mentor
student pupil
classmate
teammate
doctor
dentist
therapist counselor counsellor
nurse
lawyer
neighbour neighbor
roommate flatmate housemate
landlord landlady
hairdresser
babysitter nanny";

const THINGS: &str = "dog puppy pup
cat kitten kitty
rabbit bunny
hamster
guinea-pig
parrot
horse pony
tortoise turtle
snake
goldfish
boat sailboat yacht ship
car van truck
bike bicycle motorbike
guitar
piano
book novel
song album
band
team club
game
company firm employer business
shop store bakery
school
university college
church
hospital";

const PLACES: &str = "town hometown
city
village
country
street
island
lake
river
restaurant
café cafe
bar pub
hotel
park
beach";

const PROJECTS: &str = "project
app
startup
repository repo
library
tool
website site
blog
podcast
newsletter
channel";

/// Words between an owner and a role.
const BESIDE_ROLES: &str = "best old older elder little big younger young twin oldest eldest youngest dear late good close \
    closest new former ex favourite favorite only first second next-door";

/// A verb that joins a name before it with one behind it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Verb {
    /// The label, as it is shown between two names.
    pub(super) label: &'static str,
    pub(super) forms: &'static str,
    /// One of these must follow; none if empty.
    pub(super) behind: &'static str,
    pub(super) subject: Option<EntityKind>,
    pub(super) object: Option<EntityKind>,
}

const fn verb(
    label: &'static str,
    forms: &'static str,
    behind: &'static str,
    subject: Option<EntityKind>,
    object: Option<EntityKind>,
) -> Verb {
    Verb { label, forms, behind, subject, object }
}

const PERSON: Option<EntityKind> = Some(EntityKind::Person);
const PLACE: Option<EntityKind> = Some(EntityKind::Place);
const THING: Option<EntityKind> = Some(EntityKind::Thing);
const PROJECT: Option<EntityKind> = Some(EntityKind::Project);

const VERBS: [Verb; 41] = [
    verb("lives in", "live lives living", "in at near on", PERSON, PLACE),
    verb("lived in", "lived", "in at near", PERSON, PLACE),
    verb("moves to", "move moves moving", "to", PERSON, PLACE),
    verb("moved to", "moved", "to", PERSON, PLACE),
    verb("comes from", "come comes came", "from", None, PLACE),
    verb("is from", "am is are was were i'm he's she's we're", "from", None, PLACE),
    verb("was born in", "born", "in", PERSON, PLACE),
    verb("grew up in", "up", "in near", PERSON, PLACE),
    verb("stays in", "stay stays staying stayed", "in at", PERSON, PLACE),
    verb("goes to", "go goes going travel travels travelling traveling fly flies flying", "to", PERSON, PLACE),
    verb("went to", "went travelled traveled flew drove", "to", PERSON, PLACE),
    verb("visits", "visit visits visiting", "", PERSON, None),
    verb("visited", "visited", "", PERSON, None),
    verb("works at", "work works working", "at for", PERSON, THING),
    verb("worked at", "worked", "at for", PERSON, THING),
    verb("works with", "work works working worked", "with", PERSON, None),
    verb("works on", "work works working worked", "on", PERSON, PROJECT),
    verb("works in", "work works working worked", "in", PERSON, PLACE),
    verb("studies at", "study studies studying studied", "at", PERSON, THING),
    verb("studies in", "study studies studying studied", "in", PERSON, PLACE),
    verb("teaches at", "teach teaches teaching taught", "at", PERSON, THING),
    verb("plays for", "play plays playing played", "for in with", PERSON, None),
    verb("plays", "play plays playing played", "", PERSON, THING),
    verb("marries", "marry marries marrying", "", PERSON, PERSON),
    verb("married", "married", "to", PERSON, PERSON),
    verb("married", "married", "", PERSON, PERSON),
    verb("is engaged to", "engaged", "to", PERSON, PERSON),
    verb("is dating", "dating dates dated", "", PERSON, PERSON),
    verb("meets", "meet meets meeting", "", PERSON, None),
    verb("met", "met", "", PERSON, None),
    verb("knows", "know knows", "", PERSON, None),
    verb("likes", "like likes love loves loved adore adores enjoy enjoys", "", PERSON, None),
    verb("reads", "read reads reading", "", PERSON, THING),
    verb("uses", "use uses using", "", PERSON, THING),
    verb("joins", "join joins joining", "", PERSON, None),
    verb("joined", "joined", "", PERSON, None),
    verb("builds", "build builds building create creates creating make makes making", "", PERSON, None),
    verb("built", "built created made", "", PERSON, None),
    verb("founded", "founded started", "", PERSON, None),
    verb("runs", "run runs lead leads manage manages", "", PERSON, None),
    verb("owns", "own owns bought adopted", "", PERSON, None),
];

/// Relations in the present or to come, each with the same in the past.
const TENSES: [(&str, &str); 9] = [
    ("lives in", "lived in"),
    ("works at", "worked at"),
    ("moves to", "moved to"),
    ("goes to", "went to"),
    ("visits", "visited"),
    ("marries", "married"),
    ("meets", "met"),
    ("joins", "joined"),
    ("builds", "built"),
];

/// Returns the relation in the past, if it has a form for that.
pub(super) fn in_past(label: &'static str) -> &'static str {
    TENSES.into_iter().find(|(present, _)| *present == label).map_or(label, |(_, past)| past)
}

/// Words that may stand between a subject and its verb.
const ADVERBS: &str = "really also now still just currently always often usually recently finally actually already both \
    probably only even then am is are was were has have had been i've we've will gonna";

/// Words that turn a verb around or put it into another time.
const TURNING: &str = "not never no used if would could should might may cannot nobody wish hope want wants wanted without \
    neither nor isn't wasn't aren't weren't don't doesn't didn't can't couldn't won't wouldn't hasn't haven't hadn't \
    shouldn't ain't";

/// Words behind a name at the beginning of a sentence that show that it is one.
const AFTER_NAMES: &str = "is was has had and lives lived works worked likes loves loved said says told tells went goes came \
    comes moved moves visits meets joins builds marries travels flies called calls wants wanted got gets gave gives made makes thinks thought knows knew plays played can will \
    would could might just also always never really still usually often took takes takes bought sold found lost left met \
    wrote writes plans planned started starts stopped finished seems looks looked feels felt sent sends needs needed \
    helped helps brought brings taught teaches studies studied runs ran married adopted owns uses built visited joined \
    asked asks answered arrived returned turned won read reads sings sang paints painted cooks cooked invited isn't \
    doesn't didn't wasn't hasn't won't can't grew grows hates hated hopes hoped became becomes keeps kept stays stayed misses missed";

/// Words that begin with a capital letter and are no names.
const NO_NAMES: &str = "i i'm i've i'd i'll im monday tuesday wednesday thursday friday saturday sunday january february \
    march april june july august september october november december mon tue wed thu fri sat sun jan feb mar apr jun jul \
    aug sept sep oct nov dec english french german spanish italian dutch polish russian chinese japanese korean turkish \
    portuguese american british european ok okay lol omg btw fyi imo tbh wow yay yes no hey hi hello dear thanks thank \
    please sorry congrats congratulations good great nice sure well oh ah haha god gosh am pm tv dvd pc usb pdf id faq ceo \
    phd mom mum dad mama papa grandma grandpa granny auntie sir madam mr mrs ms dr prof miss today tomorrow yesterday \
    what when where who whom whose why how which that this these those it its he she they we you his her their our your \
    my me the a an and or but so if then there here not never just maybe perhaps also because since while after before \
    during until with without about from into over under between among as at by for in of on to up out off do does did \
    have has had is are was were be been being can could will would shall should may might must let let's lets got get \
    anyway honestly actually finally recently lately speaking guess guys everyone everybody someone somebody nobody \
    nothing something anything everything all any both each every few many more most much none other others some such \
    one two three four five six seven eight nine ten first second third next last another same christmas easter new \
    image photo picture video shares photos ps nb re";

/// Words of German that tell its texts from others: German writes every noun with a capital letter.
const GERMAN: &str = "ich und der die das nicht ist mit ein eine auf habe wir zu den dem im vom zum zur sind war auch wie \
    aber noch nach bei mein meine dass wenn oder fur mir mich hat";

/// Words before a name in German.
const GERMAN_CUES: &str = "in nach aus von herr frau namens heisst schwester bruder freund freundin mutter vater sohn tochter \
    onkel tante";

/// Words inside a name that are written small.
const INSIDE_NAMES: &str = "of de da do dos van von der den la le del di du bin ibn al el y";

/// Short forms of given names.
const SHORT_FORMS: &str = "mel melanie,liz elizabeth,lizzy elizabeth,beth elizabeth,bob robert,rob robert,bobby robert,bill \
    william,will william,jim james,jimmy james,joe joseph,tom thomas,tommy thomas,mike michael,mick michael,nick nicholas,\
    alex alexander,alex alexandra,sasha alexandra,kate katherine,kate catherine,katie katherine,kathy katherine,cathy \
    catherine,jen jennifer,jenny jennifer,dan daniel,danny daniel,dave david,ed edward,eddie edward,fred frederick,greg \
    gregory,jon jonathan,josh joshua,ken kenneth,larry lawrence,matt matthew,max maximilian,meg margaret,maggie margaret,\
    peggy margaret,pat patrick,pat patricia,pete peter,phil philip,ray raymond,rich richard,rick richard,ron ronald,sam \
    samuel,sam samantha,steve steven,steve stephen,sue susan,susie susan,ted theodore,theo theodore,tim timothy,tony \
    anthony,vicky victoria,vic victor,andy andrew,ben benjamin,charlie charles,chris christopher,chris christine,tina \
    christina,debbie deborah,becky rebecca,abby abigail,gabby gabriella,jess jessica,jo joanna,mandy amanda,nate nathan,\
    nat natalie,zach zachary,zack zachary,vero veronica,isa isabella,bella isabella,leo leonard,lou louis,gus augustus";

fn set(words: &'static str) -> HashSet<&'static str> {
    words.split_whitespace().collect()
}

static ROLES: LazyLock<HashMap<&'static str, Role>> = LazyLock::new(|| {
    let groups = [
        (PEOPLE, EntityKind::Person),
        (THINGS, EntityKind::Thing),
        (PLACES, EntityKind::Place),
        (PROJECTS, EntityKind::Project),
    ];
    let lines = groups.into_iter().flat_map(|(lines, kind)| lines.lines().map(move |line| (line, kind)));
    let words = lines.flat_map(|(line, kind)| {
        let label = line.split_whitespace().next().unwrap_or_default();
        line.split_whitespace().map(move |word| (word, Role { label, kind }))
    });
    words.collect()
});

static BY_FORM: LazyLock<HashMap<&'static str, Vec<Verb>>> = LazyLock::new(|| {
    let mut by_form: HashMap<&'static str, Vec<Verb>> = HashMap::new();
    for verb in VERBS {
        for form in verb.forms.split_whitespace() {
            by_form.entry(form).or_default().push(verb);
        }
    }
    by_form
});

static BESIDE: LazyLock<HashSet<&str>> = LazyLock::new(|| set(BESIDE_ROLES));
static ADVERB: LazyLock<HashSet<&str>> = LazyLock::new(|| set(ADVERBS));
static TURNS: LazyLock<HashSet<&str>> = LazyLock::new(|| set(TURNING));
static AFTER: LazyLock<HashSet<&str>> = LazyLock::new(|| set(AFTER_NAMES));
static OTHER: LazyLock<HashSet<&str>> = LazyLock::new(|| set(NO_NAMES));
static GERMAN_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| set(GERMAN));
static CUES: LazyLock<HashSet<&str>> = LazyLock::new(|| set(GERMAN_CUES));
static INSIDE: LazyLock<HashSet<&str>> = LazyLock::new(|| set(INSIDE_NAMES));
static FULL: LazyLock<HashMap<&'static str, Vec<&'static str>>> = LazyLock::new(|| {
    let mut full: HashMap<&'static str, Vec<&'static str>> = HashMap::new();
    for (short, name) in SHORT_FORMS.split(',').filter_map(|pair| pair.split_once(char::is_whitespace)) {
        full.entry(short.trim()).or_default().push(name.trim());
    }
    full
});

pub(super) fn role(word: &str) -> Option<Role> {
    ROLES.get(word).copied()
}

/// Returns the verbs that have this form, in the order in which they are tried.
pub(super) fn verbs(form: &str) -> &'static [Verb] {
    BY_FORM.get(form).map_or(&[], Vec::as_slice)
}

pub(super) fn is_beside_role(word: &str) -> bool {
    BESIDE.contains(word)
}

pub(super) fn is_adverb(word: &str) -> bool {
    ADVERB.contains(word)
}

pub(super) fn is_turning(word: &str) -> bool {
    TURNS.contains(word)
}

pub(super) fn shows_name_before(word: &str) -> bool {
    AFTER.contains(word)
}

pub(super) fn is_no_name(word: &str) -> bool {
    OTHER.contains(word)
}

pub(super) fn is_german(word: &str) -> bool {
    GERMAN_WORDS.contains(word)
}

pub(super) fn is_german_cue(word: &str) -> bool {
    CUES.contains(word)
}

pub(super) fn is_inside_name(word: &str) -> bool {
    INSIDE.contains(word)
}

/// Returns true for a form of address before a name, such as `Dr`.
pub(super) fn is_title(word: &str) -> bool {
    matches!(word, "mr" | "mrs" | "ms" | "miss" | "dr" | "prof" | "professor" | "sir" | "st" | "herr" | "frau")
}

/// Returns the given names of which `short` is a short form.
pub(super) fn full_forms(short: &str) -> &'static [&'static str] {
    FULL.get(short).map_or(&[], Vec::as_slice)
}

/// Returns the short forms of a given name.
pub(super) fn short_forms(full: &str) -> impl Iterator<Item = &'static str> {
    FULL.iter().filter(move |(_, names)| names.contains(&full)).map(|(short, _)| *short)
}

/// Returns true if `short` is a short form of the given name `full`.
pub(super) fn is_short_for(short: &str, full: &str) -> bool {
    full_forms(short).contains(&full)
}

/// Returns true if one of the words of a list is `word`.
pub(super) fn has(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|other| other == word)
}
