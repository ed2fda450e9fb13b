//! The words by which later reports of plans and problems are read, in English and German.

/// What says that something works again, or was found.
pub(super) const MENDED: &[&str] = &[
    "fixed",
    "repaired",
    "mended",
    "works again",
    "works now",
    "working again",
    "working now",
    "is back",
    "found it",
    "found them",
    "found my",
    "found our",
    "solved",
    "sorted",
    "replaced",
    "got a new",
    "got new",
    "bought a new",
    "turned up",
    "starts again",
    "runs again",
    "repariert",
    "geht wieder",
    "funktioniert wieder",
    "gefunden",
    "läuft wieder",
    "ersetzt",
];

/// What something does again that failed before, beside "again" or "now".
pub(super) const RUNS: &[&str] = &[
    "works", "work", "runs", "run", "starts", "start", "opens", "open", "closes", "close", "loads", "load", "connects",
    "connect", "charges", "charge", "plays", "play", "prints", "print", "moves", "move", "rings", "läuft", "geht",
];

/// What something has again that it lacked before, beside [`ONCE_MORE`].
pub(super) const HAS: &[&str] = &["has", "have"];

/// What nobody is glad to have again.
pub(super) const PAIN: &[&str] =
    &["pain", "pains", "ache", "aches", "headache", "headaches", "problem", "problems", "trouble", "leak", "fever"];

/// Words of something that is there once more.
pub(super) const ONCE_MORE: &[&str] = &["again", "wieder"];

/// Words of something that is as it was before.
pub(super) const AGAIN: &[&str] = &["again", "now", "wieder", "jetzt"];

/// What says that something that was waited for came.
pub(super) const CAME: &[&str] = &["is here", "are here", "has arrived", "arrived", "ist da", "sind da"];

/// What says that a plan was given up.
pub(super) const GIVEN_UP: &[&str] = &[
    "cancelled",
    "canceled",
    "called off",
    "changed my mind",
    "gave up",
    "not going to",
    "not gonna",
    "won't",
    "no longer going",
    "decided against",
    "abgesagt",
    "fällt aus",
    "doch nicht",
    "aufgegeben",
];

/// What says that something was done before its time.
pub(super) const ALREADY: &[&str] = &["already", "done", "finished", "schon", "fertig", "erledigt"];

/// What says that pain or sickness is over.
pub(super) const WELL: &[&str] =
    &["doesn't hurt", "does not hurt", "no longer hurts", "stopped hurting", "is gone", "tut nicht mehr weh"];

/// What says how something went, without naming it.
pub(super) const OUTCOMES: &[&str] = &[
    "it went",
    "that went",
    "went well",
    "went great",
    "went fine",
    "went badly",
    "it was great",
    "it was good",
    "it was fine",
    "it was nice",
    "it was lovely",
    "it was awful",
    "it was terrible",
    "it was bad",
    "it was okay",
    "it was ok",
    "all done",
    "it's done",
    "is done",
    "i did it",
    "we did it",
    "i made it",
    "we made it",
    "i passed",
    "i failed",
    "finished it",
    "got it done",
    "i got the job",
    "lief gut",
    "lief schlecht",
    "hat geklappt",
    "geschafft",
    "erledigt",
    "bestanden",
    "war gut",
    "war schön",
    "war toll",
];

/// Words that take a report back: it is still to come.
pub(super) const STILL: &[&str] = &["yet", "still", "noch", "almost", "nearly", "fast", "tomorrow", "morgen"];

/// Words of the past that do not end in "ed".
pub(super) const PAST: &[&str] = &[
    "was", "were", "did", "didn't", "wasn't", "weren't", "went", "got", "had", "have", "has", "done", "over", "made",
    "met", "saw", "took", "bought", "sold", "found", "came", "ate", "drove", "flew", "ran", "swam", "wrote", "sent",
    "told", "spoke", "built", "brought", "gave", "won", "lost", "taught", "held", "met", "paid", "read", "sang",
    "spent", "i've", "we've", "war", "waren", "hatte", "hatten", "habe", "haben", "hat", "ging", "wurde", "bin",
    "sind", "ist",
];

/// Endings of pasts that are none.
pub(super) const NO_PAST: &[&str] =
    &["need", "feed", "seed", "speed", "bed", "red", "shed", "wed", "hundred", "indeed", "bleed"];

/// Words of thanks: what the person says when advice was enough.
pub(super) const THANKS: &[&str] = &["thanks", "thank", "thx", "ty", "danke", "nevermind", "nvm"];
