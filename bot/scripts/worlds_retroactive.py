"""Writes bot/app/eval/retroactive.jsonl: small worlds for `azera eval changes`, in which somebody says only later since
when something holds, such as "I've lived in Hull since May", said in August.

Usage: python3 bot/scripts/worlds_retroactive.py > bot/app/eval/retroactive.jsonl

The same seed gives the same worlds. Rules are chosen on the odd lines; the even lines are held out. The two halves share
no wording of a statement.
"""

import datetime as dt
import json
import random
from zoneinfo import ZoneInfo

rng = random.Random(20261128)
DAY = dt.timedelta(days=1)
ZONES = ["Europe/Lisbon", "Europe/Berlin", "America/New_York", "Asia/Seoul", "Australia/Perth", "UTC"]
NAMES = ["alma", "bruno", "chiara", "deniz", "emil", "flora", "goran", "hanna", "ivo", "jana", "kofi", "lena"]

# For each attribute: statements of a value, statements since when one holds, values, a question about now and one about
# then. The first of each two wordings is for the odd lines, the second for the even ones.
ATTRIBUTES = {
    "home": (["I live in {}.", "My flat is in {}."], ["I've lived in {} since {}.", "My flat has been in {} since {}."],
             ["Porto", "Leeds", "Turin", "Graz", "Utrecht", "Cork"], ["Where does N live?", "Where is N's flat?"], ["Where did N live in {}?", "Where was N's flat in {}?"]),
    "job": (["I work as a {}.", "My job is being a {}."], ["I have worked as a {} since {}.", "Since {1} my job is being a {0}."],
            ["baker", "nurse", "surveyor", "welder", "florist", "librarian"], ["What does N work as?", "What is N's job?"], ["What did N work as in {}?", "What was N's job in {}?"]),
    "dentist": (["My dentist is Dr {}.", "I go to Dr {} for my teeth."], ["Dr {} has been my dentist since {}.", "I've gone to Dr {} for my teeth since {}."],
                ["Okafor", "Moreau", "Tanaka", "Weiss", "Duarte", "Kaya"], ["Who is N's dentist?", "Who does N go to for the teeth?"], ["Who was N's dentist in {}?", "Who did N go to for the teeth in {}?"]),
    "car": (["I drive a {}.", "My car is a {}."], ["I've been driving a {} since {}.", "My car has been a {} since {}."],
            ["red estate", "blue minivan", "grey hatchback", "white pickup", "green convertible"], ["What does N drive?", "What is N's car?"], ["What did N drive in {}?", "What was N's car in {}?"]),
    "sport": (["I play {} twice a week.", "My sport is {}."], ["Since {1} I play {0} twice a week.", "My sport has been {} since {}."],
              ["badminton", "handball", "water polo", "curling", "hockey"], ["What does N play?", "What is N's sport?"], ["What did N play in {}?", "What was N's sport in {}?"]),
    "course": (["I study {}.", "My subject is {}."], ["I have studied {} since {}.", "My subject has been {} since {}."],
               ["geology", "law", "nursing", "physics", "economics"], ["What does N study?", "What is N's subject?"], ["What did N study in {}?", "What was N's subject in {}?"]),
    "boss": (["My boss is {}.", "The head of our team is {}."], ["My boss has been {} since {}.", "The head of our team has been {} since {}."],
             ["Mrs Ferreira", "Mr Hansen", "Ms Adeyemi", "Mr Novak", "Mrs Tan"], ["Who is N's boss?", "Who is the head of N's team?"], ["Who was N's boss in {}?", "Who was the head of N's team in {}?"]),
}
# What has held since a month, and is about something else.
BESIDE = ["I've had a cough since {}.", "I haven't slept well since {}."]
TALK = ["morning all", "that soup was excellent", "I need a nap", "haha no way", "running late, sorry", "what a storm", "same here", "my feet hurt"]


def month(at):
    return f"{at:%B}"


def world(kind, half, way):
    """`way` is how the newer statement tells of its time: since a month, not at all, or of something else."""
    zone = ZoneInfo(rng.choice(ZONES))
    person, other, third = rng.sample(NAMES, 3)
    states, sinces, values, now_ask, then_ask = ATTRIBUTES[kind]
    old, new, others = rng.sample(values, 3)
    first = dt.datetime(2025, rng.randrange(1, 13), rng.randrange(3, 26), rng.randrange(9, 21), rng.randrange(60), tzinfo=zone)
    # The months: said, one in between, since, one in between, said anew.
    since = (first.replace(day=1) + 65 * DAY).replace(day=10)
    second = (since.replace(day=1) + (70 + rng.randrange(20)) * DAY).replace(hour=first.hour)
    before, between = (since.replace(day=1) - 15 * DAY), (since.replace(day=1) + 45 * DAY)
    text = sinces[half].format(new, month(since))
    if way == "now":
        text = states[half].format(new).rstrip(".") + " now."
    elif way == "beside":
        text = states[half].format(new).rstrip(".") + " now. " + BESIDE[half].format(month(since))
    said = [(first, person, states[half].format(old)), (second, person, text)]
    said.append((first + (second - first) * rng.random(), other, states[half].format(others)))
    said += [(first + (second - first) * rng.random(), rng.choice([person, other, third]), rng.choice(TALK)) for _ in range(4)]
    said.sort(key=lambda one: one[0])
    utc = lambda at: at.astimezone(dt.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    messages = [{"id": f"m{number + 1}", "at": utc(at), "person": who, "text": text} for number, (at, who, text) in enumerate(said)]
    of = lambda wanted: next(one["id"] for one in messages if one["person"] == person and one["text"] == wanted)
    older, newer = of(states[half].format(old)), of(text)
    after = second + rng.randrange(20, 40) * DAY
    name = person.capitalize()

    def ask(question, days, first, of_now):
        return {"at": utc(after + days * DAY), "asker": third, "question": question.replace("N's", f"{name}'s").replace("N ", f"{name} "), "first": first, "now": of_now}

    asks = [ask(now_ask[half], 0, newer, True), ask(then_ask[half].format(f"{before:%B} {before:%Y}"), 1, older, False),
            ask(then_ask[half].format(f"{between:%B} {between:%Y}"), 2, newer if way == "since" else older, False)]
    rest = [one["id"] for one in messages if one["person"] == other and one["text"] not in TALK]
    return {"zone": str(zone), "messages": messages, "closed": [older], "open": [newer, *rest], "asks": asks}


kinds = list(ATTRIBUTES)
for number in range(21):
    way = ["since", "since", "now", "since", "beside"][number % 5]
    for half in (0, 1):
        print(json.dumps(world(kinds[(number * 3) % len(kinds)], half, way), ensure_ascii=False))
