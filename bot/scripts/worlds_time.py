"""Writes bot/app/eval/time.jsonl: small worlds for `azera eval time`, each with one question about a time.

Usage: python3 bot/scripts/worlds_time.py > bot/app/eval/time.jsonl

The same seed gives the same worlds. Odd and even lines hold the same kinds, so that one half can be used to choose
something and the other to judge it.
"""

import datetime as dt
import json
import random
from zoneinfo import ZoneInfo

rng = random.Random(20260314)
DAY = dt.timedelta(days=1)
ZONES = ["Europe/Lisbon", "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Asia/Tokyo", "Asia/Kolkata",
         "Australia/Sydney", "Pacific/Auckland", "UTC", "Europe/Istanbul", "America/Los_Angeles", "Africa/Nairobi"]
NAMES = ["ann", "ben", "carla", "dmitri", "elif", "farid", "greta", "hugo", "ines", "jonas", "kemal", "lotte", "marek",
         "nadia", "oscar", "petra", "quentin", "rosa", "stefan", "tomas", "ursula", "victor", "wanda", "yusuf", "zoe"]

# A question, and statements that would answer it on different days. `{}` is the time, `P` the person.
MATTERS = [
    ("What did P cook {}?", ["Made a mushroom risotto tonight, bit too salty.", "Lentil soup on the stove, the whole flat smells of cumin.",
     "I tried that aubergine bake and burnt the top.", "Pancakes for everybody, my arm hurts from flipping.", "Cooked dumplings from scratch, forty of them."]),
    ("Which film did P watch {}?", ["Saw the one about the lighthouse keepers, loved it.", "We watched that old western with the train robbery.",
     "The documentary on octopuses was on, I cried.", "Fell asleep halfway through the space movie.", "That musical everybody talks about: not for me."]),
    ("Who did P meet {}?", ["Had coffee with my cousin Milo, he is engaged now.", "Ran into our old maths teacher at the market.",
     "Lunch with Tessa from the choir, she talked for two hours.", "The new neighbours came over, a couple with twins.", "I finally met the landlord in person."]),
    ("What did P buy {}?", ["Picked up a second-hand bicycle, it squeaks.", "I got myself proper rain boots.", "Ordered a desk lamp shaped like a heron.",
     "New curtains, dark green ones.", "Bought far too many tulip bulbs."]),
    ("Where did P go {}?", ["Took the ferry out to the island, windy but bright.", "Spent hours in the maritime museum.", "Walked up to the old quarry and back.",
     "We drove to the hot springs.", "Went to the flea market behind the station."]),
    ("What did P repair {}?", ["The washing machine runs again, it was only the pump.", "Patched the hole in the tent.", "I soldered the radio and it plays.",
     "Fixed the garden gate, new hinges.", "Glued the handle of the blue teapot."]),
    ("What did P read {}?", ["Finished the novel about the beekeeper.", "I read half of that book on glaciers.", "Poems by a Polish writer, short and sharp.",
     "The crime story you lent me, I guessed the murderer.", "An article on how bridges are painted."]),
    ("What was P unhappy about {}?", ["The dentist found two holes, of course.", "My parcel got lost again, third time.", "They cancelled the concert an hour before.",
     "Lost my keys and had to call a locksmith.", "The printer ate my report."]),
    ("What did P play {}?", ["Won at chess against my uncle.", "We played cards until the candles were gone.", "Table tennis in the basement, my wrist is done.",
     "Practised the cello suite for an hour.", "Badminton with the kids, lost every game."]),
    ("What did P find {}?", ["There was a fossil in the gravel, a real ammonite.", "Found grandma's recipe book behind the cupboard.", "A hedgehog lives under our shed!",
     "I discovered a tiny bakery behind the church.", "Dug up an old coin in the vegetable patch."]),
]
GENERAL = ["What did P do {}?", "What was P up to {}?", "What did P tell us {}?", "What happened to P {}?", "Do you remember what P did {}?"]
OWN = {"What did P do {}?": "What did I do {}?", "What was P up to {}?": "What was I up to {}?"}
# Statements that share words with general questions, but not the time.
LURES = ["What I did all afternoon was the accounts.", "I did a lot of things, in the garden above all.", "You would not believe what happened, I did it again.",
         "Not up to much, did some laundry.", "I did what I could.", "Telling you: I was up to my neck in paperwork."]
TALK = ["anyone around?", "it is so humid today", "ha, good one", "brb", "I need more sleep", "that made my day", "who took the last biscuit",
        "the bus was late again", "ok see you", "what a week", "thanks a lot!", "hmm, not sure about that"]


class World:
    def __init__(self, now):
        self.zone = ZoneInfo(rng.choice(ZONES))
        self.now = now.replace(tzinfo=self.zone)
        self.people = rng.sample(NAMES, 4)
        self.said = []

    def say(self, day, text, person=None, hours=(8, 22)):
        at = dt.datetime(day.year, day.month, day.day, rng.randrange(*hours), rng.randrange(60), tzinfo=self.zone)
        if at >= self.now:
            at = self.now - dt.timedelta(minutes=rng.randrange(5, 90))
        entry = {"at": at, "person": person or self.people[0], "text": text}
        self.said.append(entry)
        return entry

    def chatter(self, count=4):
        first = min(entry["at"] for entry in self.said)
        for _ in range(count):
            at = first + (self.now - first) * rng.random()
            self.said.append({"at": at, "person": rng.choice(self.people), "text": rng.choice(TALK)})

    def done(self, question, right, asker=None):
        self.said.sort(key=lambda entry: entry["at"])
        utc = lambda at: at.astimezone(dt.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        for number, entry in enumerate(self.said):
            entry["id"] = f"m{number + 1}"
        messages = [{"id": e["id"], "at": utc(e["at"]), "person": e["person"], "text": e["text"]} for e in self.said]
        right = right if isinstance(right, list) else [right]
        return {"zone": str(self.zone), "messages": messages, "now": utc(self.now), "asker": asker or self.people[1],
                "question": question, "right": [entry["id"] for entry in right]}


def moment():
    return dt.datetime(2026, rng.randrange(1, 13), rng.randrange(1, 28), rng.randrange(11, 22), rng.randrange(60))


def dated(phrase, day_of, others, now=None, hours=(8, 22), own=None):
    """One matter on several days; the question asks for the one on `day_of(today)`."""
    world = World(now or moment())
    today = world.now.date()
    target = day_of(today)
    own = rng.random() < 0.3 if own is None else own
    asker = world.people[0] if own else None
    general = rng.random() < 0.4
    question, texts = rng.choice(MATTERS)
    texts = rng.sample(texts, len(texts))
    # Now and then a message is said shortly before midnight, which is another day in UTC.
    right = world.say(target, texts.pop(), hours=(22, 24) if hours == (8, 22) and rng.random() < 0.3 and target < today else hours)
    if general:
        question = rng.choice(list(OWN) if own else GENERAL)
        world.say(others(today), rng.choice(LURES))
    for _ in range(rng.randrange(2, 4)):
        world.say(others(today), texts.pop())
    # Somebody else speaks on the same day.
    world.say(target, rng.choice(rng.choice(MATTERS)[1]), person=world.people[2])
    world.chatter()
    if own:
        question = OWN.get(question, question.replace("did P", "did I").replace("was P", "was I"))
    phrase = phrase(target) if callable(phrase) else phrase
    return world.done(question.replace("P", world.people[0].capitalize(), 1).format(phrase), right, asker)


def apart(target_of, least, most):
    """Returns days at least `least` days away from the target, on either side but not in the future."""
    def day(today):
        for _ in range(100):
            shift = rng.randrange(least, most) * rng.choice([-1, 1])
            found = target_of(today) + shift * DAY
            if found <= today:
                return found
        return target_of(today) - least * DAY
    return day


def relative():
    n = rng.randrange(3, 7)
    word = ["three", "four", "five", "six"][n - 3]
    options = [("yesterday", 1), ("yesterday", 1), ("the day before yesterday", 2), (f"{n} days ago", n), (f"{word} days ago", n),
               ("today", 0), ("a week ago", 7), ("two days ago", 2)]
    phrase, back = rng.choice(options)
    day = lambda today: today - back * DAY
    return dated(phrase, day, apart(day, 1 if back < 7 else 3, 9))


def part_of_day():
    phrase, back, hours, others = rng.choice([("this morning", 0, (6, 10), (13, 16)), ("last night", 1, (20, 23), (7, 12)),
                                              ("yesterday evening", 1, (18, 22), (7, 12)), ("yesterday morning", 1, (7, 11), (16, 21))])
    now = moment().replace(hour=rng.randrange(17, 22))
    day = lambda today: today - back * DAY
    world_line = dated(phrase, day, apart(day, 1, 6), now=now, hours=hours)
    return world_line


def weekday():
    names = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    back = rng.randrange(2, 8)
    day = lambda today: today - back * DAY
    forms = ["last {}", "on {}", "last {}", "{}"] if back < 7 else ["last {}"]
    form = rng.choice(forms)
    return dated(lambda target: form.format(names[target.weekday()]), day, apart(day, 1, 12))


def weekend():
    now = moment()
    now -= dt.timedelta(days=now.weekday() - rng.randrange(0, 5))
    day = lambda today: today - (today.weekday() + rng.choice([1, 2])) * DAY
    others = lambda today: today - rng.choice([today.weekday() + 4, today.weekday() + 5, today.weekday() + 9, today.weekday() + 11]) * DAY
    return dated(rng.choice(["last weekend", "at the weekend", "over the weekend"]), day, others, now=now)


def week():
    phrase, least, most = rng.choice([("last week", 1, 1), ("two weeks ago", 13, 15), ("three weeks ago", 20, 22), ("a fortnight ago", 13, 15)])
    if phrase == "last week":
        day = lambda today: today - (today.weekday() + rng.randrange(2, 6)) * DAY
        others = lambda today: today - (today.weekday() + rng.randrange(10, 30)) * DAY
        return dated(phrase, day, others)
    back = rng.randrange(least, most + 1)
    day = lambda today: today - back * DAY
    return dated(phrase, day, apart(day, 8, 25))


def month():
    kind = rng.randrange(4)
    if kind == 0:
        day = lambda today: (today.replace(day=1) - DAY).replace(day=rng.randrange(3, 26))
        return dated("last month", day, lambda today: (today.replace(day=1) - 31 * DAY).replace(day=1) - rng.randrange(10, 90) * DAY)
    if kind == 1:
        n = rng.randrange(2, 6)
        day = lambda today: today - dt.timedelta(days=int(30.4 * n) + rng.randrange(-3, 4))
        return dated(f"{['two', 'three', 'four', 'five'][n - 2]} months ago", day, apart(day, 40, 120))
    if kind == 2:
        day = lambda today: today.replace(year=today.year - 1, month=rng.randrange(2, 12), day=12)
        return dated("last year", day, lambda today: rng.choice([dt.date(today.year - 2, rng.randrange(1, 13), 3), dt.date(today.year, 1, 2)]))
    now = moment().replace(month=rng.randrange(9, 12))
    day = lambda today: dt.date(2026, rng.randrange(3, 6), rng.randrange(5, 25))
    line = dated("in spring", day, lambda today: dt.date(2026, rng.choice([1, 7, 8]), rng.randrange(3, 27)), now=now)
    return line if not line["zone"].startswith(("Austr", "Pacific", "America/Sao")) else month()


SPELLED = [
    "on {d:%d/%m/%Y}", "on {d:%d.%m.%Y}", "on {d:%Y-%m-%d}", "on {d:%b} {d.day}", "on {d.day} {d:%b}", "on {d:%B} {d.day}, {d.year}",
    "on {d.day} {d:%B} {d.year}", "on the {d.day}th of {d:%B}", "on {d:%b} {d.day}th", "on {d:%d/%m}", "at {d:%Y-%m-%d}T12:00", "on {d.day} {d:%b} {d.year}",
]


def absolute():
    form = rng.choice(SPELLED)
    now = moment()
    back = rng.randrange(8, 200)
    day = lambda today: (today - back * DAY).replace(day=rng.randrange(13, 20))
    return dated(lambda target: form.format(d=target), day, apart(day, rng.choice([1, 2, 5]), 60), now=now)


def by_month():
    now = moment().replace(month=rng.randrange(6, 13))
    of = now.month - rng.randrange(2, 5)
    first = dt.date(2026, of, 1)
    form = rng.choice(["in {d:%B}", "in {d:%B} 2026", "in 2026-{d:%m}", "in {d:%b} 2026", "during {d:%B}", "back in {d:%B}"])
    day = lambda today: first.replace(day=rng.randrange(4, 26))
    others = lambda today: min(first + rng.choice([-25, -12, -48, 43, 58]) * DAY, today)
    return dated(form.format(d=first), day, others, now=now)


def day_of_month():
    now = moment().replace(day=rng.randrange(20, 28))
    number = rng.randrange(4, 18)
    day = lambda today: today.replace(day=number)
    suffix = "th"
    return dated(rng.choice(["on the {}{}", "on the {}{}"]).format(number, suffix), day, apart(day, 1, 30), now=now)


THINGS = [("the boat", "The boat needs a new sail before we take it out.", "Somebody should look at the boat engine."),
          ("the party", "I will bring my own speakers to the party.", "Is the party still at yours?"),
          ("the exam", "The exam was harder than anything we practised.", "When is the exam again, ten?"),
          ("the allotment", "Slugs ate half the lettuce on the allotment.", "The allotment gate was open all night."),
          ("the choir", "I am leaving the choir after the concert.", "Choir is in the small hall from now on."),
          ("the car", "The car made that noise again on the hill.", "Can anyone lend me a car next week?"),
          ("the holiday", "For the holiday I would rather have mountains.", "Booked nothing for the holiday so far."),
          ("the dog", "Our dog has learnt to open the fridge.", "The vet says the dog is too heavy.")]


def persons_name():
    name, month_number = rng.choice([("april", 4), ("may", 5), ("june", 6), ("august", 8), ("summer", 7)])
    now = moment().replace(month=rng.randrange(9, 12))
    world = World(now)
    thing, hers, other = rng.choice(THINGS)
    shown = name.capitalize()
    right = world.say(dt.date(2026, rng.choice([1, 2, 3]), rng.randrange(2, 27)), hers, person=name)
    world.say(dt.date(2026, month_number, rng.randrange(3, 26)), other)
    world.say(dt.date(2026, month_number, rng.randrange(3, 26)), rng.choice(rng.choice(MATTERS)[1]), person=world.people[2])
    _, elses, _ = rng.choice([it for it in THINGS if it[0] != thing])
    world.say(dt.date(2026, rng.choice([2, 3]), rng.randrange(2, 27)), elses, person=name)
    world.chatter()
    question = rng.choice(["What did N say about T?", "What does N think about T?", "What did N tell us about T?", "Has N said anything about T?",
                           "What was it that N said about T?"])
    return world.done(question.replace("N", shown).replace("T", thing), right)


def name_and_month():
    """Somebody called April speaks, and the question is about the month."""
    name, number = rng.choice([("april", 4), ("june", 6), ("august", 8)])
    now = moment().replace(month=rng.randrange(9, 12))
    world = World(now)
    question, texts = rng.choice(MATTERS)
    texts = rng.sample(texts, len(texts))
    right = world.say(dt.date(2026, number, rng.randrange(4, 26)), texts.pop())
    world.say(dt.date(2026, rng.choice([1, 2]), 11), texts.pop())
    world.say(dt.date(2026, 3, rng.randrange(3, 20)), texts.pop(), person=name)
    world.chatter()
    person = world.people[0].capitalize()
    return world.done(question.replace("P", person, 1).format(rng.choice(["in {}", "during {}"]).format(name.capitalize())), right)


EVENTS = [("we moved", ["We moved into the new flat today, boxes everywhere.", "Moving day! All our things are in the new place."]),
          ("the flood", ["The river came over the bank, the flood reached our cellar.", "What a flood, the street is a canal."]),
          ("I changed jobs", ["First day at the new job, I signed the contract this morning.", "Changed jobs: as of today I work at the shipyard."]),
          ("the wedding", ["What a wedding, we danced until four.", "The wedding was beautiful, even the rain stopped."]),
          ("the accident", ["Somebody drove into my bike, I had an accident at the crossing.", "Had a small accident on the stairs, arm in plaster."]),
          ("we got the puppy", ["The puppy is here! She slept in my shoe.", "We picked up our puppy from the farm."]),
          ("the baby was born", ["The baby was born at dawn, three kilos and loud.", "Our baby is born, everybody is well."]),
          ("the exam", ["Exam done! I think the last question went wrong.", "Wrote the exam, my hand is dead."]),
          ("the trip to Oslo", ["Back from our trip to Oslo, tired and happy.", "Our trip to Oslo begins, the train is full."]),
          ("the power cut", ["Power cut in the whole street, candles it is.", "No light since noon, a proper power cut."])]


def beside_event():
    world = World(moment().replace(month=rng.randrange(6, 13)))
    today = world.now.date()
    event, texts = rng.choice(EVENTS)
    day = today - rng.randrange(40, 90) * DAY
    side = rng.choice(["before", "before", "after", "since"])
    question, answers = rng.choice(MATTERS)
    answers = rng.sample(answers, len(answers))
    early, late = (day - rng.randrange(3, 25) * DAY, day + rng.randrange(3, 25) * DAY)
    right = world.say(early if side == "before" else late, answers.pop())
    world.say(late if side == "before" else early, answers.pop())
    world.say((late if side == "before" else early) + (5 if side == "before" else -5) * DAY, answers.pop())
    world.say(day, rng.choice(texts), person=rng.choice(world.people[:2]))
    world.chatter()
    person = world.people[0].capitalize()
    core = question.replace("P", person, 1)
    if rng.random() < 0.3:
        first = core.format("").replace(" ?", "?")
        return world.done(f"{side.capitalize()} {event}, {first[0].lower()}{first[1:]}", right)
    return world.done(core.format(f"{side} {event}"), right)


# What is asked for, the older statement, the newer one, a question about now, and one about then.
LASTING = [("My phone number is 0171 4482.", "I have a new phone number: 0160 9931.", "What is my phone number?", "What was my old phone number?"),
           ("I live in a shared flat in Porto.", "I have moved to a cottage in Braga.", "Where do I live now?", "Where did I live before?"),
           ("I work as a baker on Mill Street.", "I work at the observatory these days.", "What is my job at the moment?", "What was my old job?"),
           ("My cat's name was Pepper, our first one.", "Our cat now is called Olive.", "What is my cat called now?", "What was my previous cat called?"),
           ("I drive a yellow van.", "Sold it, I drive an electric hatchback now.", "What do I drive these days?", "What did I drive before?"),
           ("My gym is the one by the harbour.", "I switched gyms, it is the one in the mill now.", "Which gym do I go to now?", "Which gym did I use to go to?"),
           ("My doctor is Dr Lindqvist.", "My new doctor is Dr Okafor.", "Who is my doctor at present?", "Who was my former doctor?"),
           ("My desk is on the second floor.", "They moved my desk to the fifth floor.", "Where is my desk now?", "Where was my desk before?")]


def lasting():
    world = World(moment())
    today = world.now.date()
    old, new, now_question, then_question = rng.choice(LASTING)
    older = world.say(today - rng.randrange(60, 200) * DAY, old)
    newer = world.say(today - rng.randrange(3, 50) * DAY, new)
    other = rng.choice([it for it in LASTING if it[0] != old])
    world.say(today - rng.randrange(3, 200) * DAY, rng.choice(other[:2]))
    world.say(today - rng.randrange(3, 200) * DAY, rng.choice(rng.choice(MATTERS)[1]))
    world.chatter()
    is_now = rng.random() < 0.5
    return world.done(now_question if is_now else then_question, newer if is_now else older, world.people[0])


SPOKEN = {
    "de": (["Was hat P {} gemacht?", "Was hat P {} erzählt?"], {1: ["gestern"], 2: ["vorgestern", "vor zwei Tagen"], 7: ["vor einer Woche"], "d": ["am {d.day}. {m}"], "m": ["im {m}"]},
           ["Ich habe Brot gebacken, mit Roggen.", "Wir waren im Moor wandern.", "Das Dach ist endlich dicht.", "Mein Fahrrad hat neue Reifen."],
           "Januar Februar März April Mai Juni Juli August September Oktober November Dezember"),
    "es": (["¿Qué hizo P {}?", "¿Qué contó P {}?"], {1: ["ayer"], 2: ["anteayer", "hace dos días"], 7: ["hace una semana"], "d": ["el {d.day} de {m}"], "m": ["en {m}"]},
           ["Arreglé la persiana del salón.", "Fuimos al río con los niños.", "Planté tomates en la terraza.", "Terminé la novela del faro."],
           "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"),
    "fr": (["Qu'est-ce que P a fait {} ?", "Qu'a raconté P {} ?"], {1: ["hier"], 2: ["avant-hier", "il y a deux jours"], 7: ["il y a une semaine"], "d": ["le {d.day} {m}"], "m": ["en {m}"]},
           ["J'ai repeint la cuisine en bleu.", "On a pris le bateau pour l'île.", "Le vélo est réparé.", "J'ai vu une pièce de théâtre magnifique."],
           "janvier février mars avril mai juin juillet août septembre octobre novembre décembre"),
    "it": (["Che cosa ha fatto P {}?", "Cosa ha raccontato P {}?"], {1: ["ieri"], 2: ["l'altro ieri", "due giorni fa"], 7: ["una settimana fa"], "d": ["il {d.day} {m}"], "m": ["a {m}"]},
           ["Ho cucinato gli gnocchi per tutti.", "Siamo saliti al rifugio.", "La lavatrice funziona di nuovo.", "Ho comprato una lampada rossa."],
           "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre"),
    "pt": (["O que fez P {}?", "O que contou P {}?"], {1: ["ontem"], 2: ["anteontem", "há dois dias"], 7: ["há uma semana"], "d": ["em {d.day} de {m}"], "m": ["em {m}"]},
           ["Pintei a varanda de branco.", "Fomos à feira dos livros.", "O carro já anda outra vez.", "Fiz um bolo de laranja."],
           "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro"),
    "tr": (["P {} ne yaptı?", "P {} ne anlattı?"], {1: ["dün"], 2: ["iki gün önce"], 7: ["bir hafta önce"], "d": ["{d.day} {m} günü"], "m": ["{m} ayında"]},
           ["Bahçeye domates diktim.", "Vapurla adaya gittik.", "Bisikletin zincirini değiştirdim.", "Annemle börek yaptık."],
           "Ocak Şubat Mart Nisan Mayıs Haziran Temmuz Ağustos Eylül Ekim Kasım Aralık"),
    "nl": (["Wat heeft P {} gedaan?", "Wat vertelde P {}?"], {1: ["gisteren"], 2: ["eergisteren", "twee dagen geleden"], 7: ["een week geleden"], "d": ["op {d.day} {m}"], "m": ["in {m}"]},
           ["Ik heb de schuur geverfd.", "We zijn naar het strand gefietst.", "De kachel doet het weer.", "Ik heb erwtensoep gemaakt."],
           "januari februari maart april mei juni juli augustus september oktober november december"),
}


def foreign():
    questions, phrases, texts, months = SPOKEN[rng.choice(list(SPOKEN))]
    world = World(moment().replace(month=rng.randrange(5, 13)))
    today = world.now.date()
    kind = rng.choice(list(phrases))
    if kind == "m":
        target = (today.replace(day=1) - 45 * DAY).replace(day=rng.randrange(4, 25))
    elif kind == "d":
        target = (today - rng.randrange(10, 90) * DAY).replace(day=rng.randrange(13, 27))
    else:
        target = today - kind * DAY
    texts = rng.sample(texts, 4)
    right = world.say(target, texts.pop())
    gaps = [40, 55, 80] if kind == "m" else [2, 4, 9] if kind != 7 else [4, 11, 20]
    for gap in gaps:
        world.say(target - gap * DAY if kind != 1 else target - (gap - 1) * DAY, texts.pop())
    world.chatter(2)
    phrase = rng.choice(phrases[kind]).format(d=target, m=months.split()[target.month - 1])
    return world.done(rng.choice(questions).replace("P", world.people[0].capitalize(), 1).format(phrase), right)


KINDS = [(relative, 30), (part_of_day, 10), (weekday, 20), (weekend, 8), (week, 12), (month, 14), (absolute, 30), (by_month, 16), (day_of_month, 6),
         (persons_name, 14), (name_and_month, 6), (beside_event, 24), (lasting, 16), (foreign, 30)]

for make, count in KINDS:
    for _ in range(count):
        print(json.dumps(make(), ensure_ascii=False))
