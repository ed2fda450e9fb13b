"""Writes bot/app/eval/changes.jsonl: small worlds for `azera eval changes`, in which one statement replaces another.

Usage: python3 bot/scripts/worlds_changes.py > bot/app/eval/changes.jsonl

The same seed gives the same worlds. Odd and even lines hold the same kinds, so that one half can be used to choose
something and the other to judge it.
"""

import datetime as dt
import json
import random
import re
from zoneinfo import ZoneInfo

rng = random.Random(20260607)
DAY = dt.timedelta(days=1)
ZONES = ["Europe/Lisbon", "Europe/Berlin", "America/New_York", "America/Bogota", "Asia/Seoul", "Asia/Kolkata", "Australia/Perth", "UTC", "Europe/Istanbul"]
NAMES = ["alma", "bruno", "chiara", "deniz", "emil", "flora", "goran", "hanna", "ivo", "jana", "kofi", "lena", "mirko", "noor", "olga", "pavel",
         "rita", "samir", "tilda", "umut", "vera", "wim", "xenia", "yara", "zeno"]

# For each attribute: statements of a value, statements of a change to a value, values, questions about now, questions
# about then. `S` is `I`, `O` is `my`.
ATTRIBUTES = {
    "home": (["We live in {}, near the station.", "I'm living in {}, third floor without a lift.", "My place is in {}."],
             ["We've moved to {}!", "Finally settled in {}, boxes all unpacked.", "I live in {} now.", "New address since Monday: {}."],
             ["Porto", "Gdansk", "Leeds", "Turin", "Malmo", "Graz", "Split", "Utrecht", "Cork", "Lyon"],
             ["Where does N live?", "Which city does N live in now?", "Where is N living these days?"],
             ["Where did N live before?", "Where did N use to live?", "In which city did N live before the move?"]),
    "job": (["I work as a {}.", "I've been a {} for years.", "My job is being a {}."],
            ["Started as a {} this week.", "I'm a {} now, who would have thought.", "New job: {}!", "Quit, and they took me on as a {}."],
            ["baker", "tram driver", "nurse", "surveyor", "beekeeper", "translator", "welder", "librarian", "florist", "sound engineer"],
            ["What does N do for work?", "What is N's job?", "What's N's job now?"],
            ["What was N's old job?", "What did N do for work before?", "What was N's previous job?"]),
    "phone": (["My number is {}, call any time.", "You can reach me on {}.", "My phone number: {}."],
              ["I have a new number, {}.", "Please use {} from now on to call me.", "Lost the phone; my number is {} now."],
              ["0171 4482", "0160 9931", "555 0142", "555 0199", "0772 31 08", "0699 7710", "0151 2233", "0555 6120"],
              ["What is N's phone number?", "On which number can I reach N?", "How do I call N?"],
              ["What was N's old number?", "Which number did N have before?"]),
    "code": (["The door code of the studio is {}.", "Studio door: {}, then the hash key."],
             ["They changed the code of the studio door, it's {} now.", "The studio door has a new code: {}.", "Studio door code is {} since the locksmith came."],
             ["4471", "9032", "1186", "7720", "3059", "6614", "8241", "5507"],
             ["What is the code of the studio door?", "Which code opens the studio?", "How do we get into the studio, what's the code?"],
             ["What was the old code of the studio door?", "Which code did the studio door have before?"]),
    "pet": (["Our dog is called {}.", "My dog {} sleeps on the sofa."],
            ["We have a new dog, {}.", "After all these months there's a dog in the house again: {}.", "The dog we adopted is called {}."],
            ["Bruno", "Tilly", "Rex", "Mocha", "Fado", "Nella", "Otto", "Pixel"],
            ["What is N's dog called?", "What's the name of N's dog?"],
            ["What was N's previous dog called?", "What was the name of N's old dog?"]),
    "car": (["I drive a {}.", "My car is a {}, older than me."],
            ["Sold it and bought a {}.", "I drive a {} now.", "My new car is a {}."],
            ["red estate", "blue minivan", "grey hatchback", "white pickup", "green convertible", "black saloon"],
            ["What car does N drive?", "Which car does N have now?"],
            ["What did N drive before?", "What was N's old car?"]),
    "class": (["Our pottery class is on {}.", "Pottery is every {} at seven."],
              ["The pottery class moved to {}.", "From now on pottery is on {}.", "They rescheduled pottery, it's {} instead."],
              ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"],
              ["When is the pottery class?", "On which day is pottery?"],
              ["When was the pottery class before?", "On which day did pottery use to be?"]),
    "doctor": (["My dentist is Dr {}.", "I go to Dr {} for my teeth."],
               ["I switched dentists, it's Dr {} now.", "My new dentist is Dr {}.", "Dr {} looks after my teeth now."],
               ["Lindqvist", "Okafor", "Moreau", "Petrov", "Tanaka", "Weiss", "Duarte", "Kaya"],
               ["Who is N's dentist?", "Which dentist does N go to now?"],
               ["Who was N's dentist before?", "Who was N's former dentist?"]),
    "diet": (["I eat {}.", "Mostly I live on {}."],
             ["I stopped that, I only eat {} now.", "Doctor's orders: from now on it's {} for me.", "Changed my diet to {}."],
             ["no meat at all", "lots of fish", "everything but dairy", "porridge and fruit", "low salt food"],
             ["What does N eat?", "What is N's diet now?"],
             ["What did N eat before?", "What was N's diet earlier?"]),
    "sport": (["I play {} twice a week.", "My sport is {}."],
              ["My knee said no, so it's {} now.", "I switched to {}.", "I've taken up {} instead."],
              ["badminton", "handball", "rowing", "climbing", "water polo", "fencing", "curling"],
              ["Which sport does N do?", "What sport does N play now?"],
              ["Which sport did N do before?", "What sport did N use to play?"]),
    "instrument": (["I'm learning the {}.", "I practise the {} every evening."],
                   ["I gave that up and play the {} now.", "Swapped it for a {}.", "These days I practise the {} instead."],
                   ["oboe", "banjo", "cello", "accordion", "harp", "trombone", "ukulele"],
                   ["Which instrument does N play?", "What instrument is N learning now?"],
                   ["Which instrument did N play before?", "Which instrument did N use to practise?"]),
    "meeting": (["The book club meets at {}.", "Book club is at {}."],
                ["Book club meets at {} from now on.", "The book club changed places: it's at {} now.", "New place for the book club: {}."],
                ["the corner cafe", "the library", "Milan's garage", "the town hall", "the boathouse", "the old school"],
                ["Where does the book club meet?", "Where is book club now?"],
                ["Where did the book club meet before?", "Where did book club use to be?"]),
    "partner": (["I'm seeing somebody called {}.", "My partner {} says hello."],
                ["{} and I are together now.", "I'm with {} now.", "My new partner is {}."],
                ["Robin", "Sascha", "Andrea", "Kim", "Noa", "Jules", "Charlie"],
                ["Who is N's partner?", "Who is N together with now?"],
                ["Who was N's partner before?", "Who was N's former partner?"]),
    "course": (["I study {}.", "I'm enrolled in {}."],
               ["I changed my subject to {}.", "Dropped it, I study {} now.", "As of this term I'm in {}."],
               ["geology", "law", "nursing", "physics", "architecture", "fine art", "economics"],
               ["What does N study?", "What is N's subject now?"],
               ["What did N study before?", "What was N's subject originally?"]),
    "wifi": (["The wifi password here is {}.", "Guest wifi: {}."],
             ["New wifi password: {}.", "I changed the wifi password to {}.", "The wifi has another password now, {}."],
             ["bluewhale7", "teapot99", "lanterns4", "mossgreen2", "ferrybell5"],
             ["What's the wifi password?", "What is the password of the wifi now?"],
             ["What was the old wifi password?", "What was the wifi password before?"]),
    "price": (["The membership costs {} a month.", "We pay {} a month for the membership."],
              ["The membership went up to {} a month.", "They updated the membership fee, {} a month now.", "From this month the membership is {}."],
              ["12 euros", "15 euros", "18 euros", "22 euros", "9 euros"],
              ["How much is the membership?", "What does the membership cost now?"],
              ["What did the membership cost before?", "What was the old membership fee?"]),
    "shift": (["I'm on the {} shift.", "They have me on {} shifts."],
              ["They put me on the {} shift now.", "I changed to {} shifts.", "From next week on I do the {} shift instead."],
              ["early", "late", "night", "weekend"],
              ["Which shift does N work?", "Which shift is N on now?"],
              ["Which shift was N on before?", "Which shift did N use to work?"]),
    "boss": (["My boss is {}.", "{} is my boss, strict but fair."],
             ["We have a new boss, {}.", "{} took over as my boss.", "My boss is {} now."],
             ["Mrs Ferreira", "Mr Hansen", "Ms Adeyemi", "Mr Novak", "Mrs Tan"],
             ["Who is N's boss?", "Who is N's boss at the moment?"],
             ["Who was N's boss before?", "Who was N's old boss?"]),
}
# Facts that stay, with their questions.
LASTING = [("I'm allergic to hazelnuts.", "What is N allergic to?"), ("My birthday is the 3rd of October.", "When is N's birthday?"), ("My sister is called Marit.", "What is the name of N's sister?"),
           ("I wear size 43 shoes.", "What is N's shoe size?"), ("I grew up on a houseboat.", "Where did N grow up?"), ("My middle name is Fenn.", "What is N's middle name?"),
           ("My brother lives in Oslo with his twins.", "Where does N's brother live?"), ("My grandmother worked as a diver.", "What did N's grandmother do?"),
           ("I can't stand coriander.", "Which herb does N dislike?"), ("My aunt's dog is called Biscuit.", "What is the dog of N's aunt called?"), ("Mum drives a tiny yellow car.", "What does N's mum drive?"),
           ("The bike shed code is 2290.", "What is the code of the bike shed?"), ("Choir practice is on Sunday.", "When is choir practice?"), ("My colleague studies Japanese.", "What does N's colleague study?")]
TALK = ["morning all", "that soup was excellent", "I need a nap", "did you see the moon?", "haha no way", "running late, sorry", "what a storm", "good luck tomorrow!", "same here",
        "just got home", "anyone up for tea?", "my feet hurt", "that's wild", "can't find my glasses"]


def world():
    zone = ZoneInfo(rng.choice(ZONES))
    people = rng.sample(NAMES, 3)
    person, other = people[0], people[1]
    kind = rng.choice(list(ATTRIBUTES))
    states, changes, values, now_asks, then_asks = ATTRIBUTES[kind]
    start = dt.datetime(2025, rng.randrange(1, 13), rng.randrange(1, 28), rng.randrange(8, 22), rng.randrange(60), tzinfo=zone)
    steps = 3 if rng.random() < 0.2 else 2
    chosen = rng.sample(values, min(steps, len(values)))
    said, chain, at = [], [], start

    def say(at, who, text):
        entry = {"at": at, "person": who, "text": text}
        said.append(entry)
        return entry

    for number, value in enumerate(chosen):
        # Now and then the later statement does not say that anything changed.
        forms = states if number == 0 or rng.random() < 0.3 else changes
        text = rng.choice(forms).format(value)
        chain.append(say(at, person, text[0].upper() + text[1:]))
        at += rng.randrange(20, 150) * DAY + dt.timedelta(minutes=rng.randrange(600))
    end = at
    lasting = rng.sample(LASTING, 2)
    stays = [say(start + (end - start) * rng.random(), person, text) for text, _ in lasting]
    # Somebody else says the same kind of thing about themselves.
    if kind not in ("code", "class", "meeting", "wifi", "price"):
        rest = [value for value in values if value not in chosen]
        if rest:
            text = rng.choice(states + changes[:1]).format(rng.choice(rest))
            stays.append(say(start + (end - start) * rng.random(), other, text[0].upper() + text[1:]))
    for _ in range(rng.randrange(3, 6)):
        say(start + (end - start) * rng.random(), rng.choice(people), rng.choice(TALK))
    said.sort(key=lambda entry: entry["at"])
    for number, entry in enumerate(said):
        entry["id"] = f"m{number + 1}"
    after = end + rng.randrange(1, 20) * DAY
    utc = lambda at: at.astimezone(dt.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")

    def ask(at, question, entry):
        own = rng.random() < 0.35
        asker = person if own else people[2]
        question = mine(question) if own else re.sub(r"\bN\b", person.capitalize(), question)
        return {"at": utc(at), "asker": asker, "question": question, "first": entry["id"]}

    asks = [ask(after, rng.choice(now_asks), chain[-1])]
    if rng.random() < 0.75:
        asks.append(ask(after + DAY, rng.choice(then_asks), chain[-2]))
    if rng.random() < 0.3:
        # Asked while the first one still held.
        early = chain[0]["at"] + (chain[1]["at"] - chain[0]["at"]) * 0.5
        asks.append(ask(early, now_asks[0], chain[0]))
    if rng.random() < 0.25:
        middle = chain[0]["at"] + (chain[1]["at"] - chain[0]["at"]) * 0.5
        if (chain[1]["at"].year, chain[1]["at"].month) > (middle.year, middle.month) > (chain[0]["at"].year, chain[0]["at"].month):
            past = then_asks[0].replace(" before", "").replace("old ", "").replace("previous ", "").replace("former ", "").replace("originally", "").rstrip("? ")
            past = past.replace(" use to", "").replace(" the move", "")
            asks.append(ask(after, f"{past} in {middle:%B} {middle.year}?", chain[0]))
    if rng.random() < 0.4:
        text, question = lasting[0]
        asks.append(ask(after, question, stays[0]))
    messages = [{"id": e["id"], "at": utc(e["at"]), "person": e["person"], "text": e["text"]} for e in said]
    return {"zone": str(zone), "messages": messages, "closed": [entry["id"] for entry in chain[:-1]],
            "open": [chain[-1]["id"]] + [entry["id"] for entry in stays], "asks": asks}


def mine(question):
    """Turns a question about a person into the person's own."""
    for old, new in [("N's", "my"), ("does N", "do I"), ("did N", "did I"), ("is N ", "am I "), ("was N ", "was I "), ("reach N", "reach me"), ("call N", "call me")]:
        question = question.replace(old, new)
    return question.replace("reach me", "people reach me").replace("can I people", "can people").replace("do I call me", "do people call me")


for _ in range(200):
    print(json.dumps(world(), ensure_ascii=False))
