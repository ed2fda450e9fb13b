#!/usr/bin/env python3
"""Measures how long lists and searches take over HTTP, for one account with many messages.

Usage: python3 bot/scripts/lists_bench.py AZERA [MESSAGES] [REQUESTS]

It starts AZERA with a scripted model in a folder of its own, and makes an account. `azera bench fill` then fills the chats of
that account with MESSAGES (100000) messages, a hundred in each chat, and a dream for each chat. Started again, AZERA is asked
REQUESTS (400) times for each list, one request at a time, and at most 15 a second, because one account may send 20. The times
are those of the client, over one connection. Prints one JSON object.
"""

import http.client
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

PAUSE_S = 1 / 15
WARM_UP = 20
SAID = 40


def start(azera, folder):
    settings = {"AZERA_CONFIG": "/dev/null", "AZERA__HTTP__LISTEN": "127.0.0.1:0"}
    command = [azera, "run", "--data", folder, "--model", "scripted"]
    process = subprocess.Popen(
        command, env=os.environ | settings, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    for line in process.stderr:
        if "Azera listens" in line:
            break
    else:
        sys.exit("Azera did not start.")
    threading.Thread(target=lambda: [None for _ in process.stderr], daemon=True).start()
    return process


def stop(process):
    process.terminate()
    process.wait()


def local(folder):
    with open(os.path.join(folder, "web.json")) as file:
        return json.load(file)


def post(address, path, body, headers):
    headers = {"Content-Type": "application/json"} | headers
    request = urllib.request.Request(address + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer), answer.headers


def make_account(web):
    """Returns the id of the owner's account, and a key of it."""
    wish = {"code": web["setup"].split("=")[-1], "name": "Ann", "password": "correct horse battery"}
    session, headers = post(web["address"], "/api/setup", wish, {})
    headers = {"Cookie": headers["Set-Cookie"].split(";")[0], "X-CSRF-Token": session["csrf"]}
    wanted = {"name": "lists", "scopes": ["chat", "memory:read", "memory:write", "admin"]}
    key, _ = post(web["address"], "/api/keys", wanted, headers)
    request = urllib.request.Request(web["address"] + "/api/accounts", headers={"Authorization": f"Bearer {key['key']}"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["items"][0]["id"], key["key"]


class Client:
    def __init__(self, address, key):
        self.connection = http.client.HTTPConnection(address.split("//")[1])
        self.headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def ask(self, method, path, body=None):
        """Returns the answer, and how many milliseconds it took."""
        time.sleep(PAUSE_S)
        content = json.dumps(body) if body is not None else None
        begun = time.perf_counter()
        self.connection.request(method, path, content, self.headers)
        answer = self.connection.getresponse()
        read = answer.read()
        took = (time.perf_counter() - begun) * 1000
        if answer.status != 200:
            sys.exit(f"{method} {path}: {answer.status} {read[:300]!r}")
        return read, took


def percentile(times, share):
    return round(sorted(times)[min(len(times) - 1, int(len(times) * share))], 1)


def measure(client, requests, wish):
    times, size = [], 0
    for number in range(WARM_UP + requests):
        read, took = client.ask(*wish())
        if number >= WARM_UP:
            times.append(took)
            size = max(size, len(read))
    return {"p50_ms": percentile(times, 0.5), "p99_ms": percentile(times, 0.99), "max_ms": round(max(times), 1), "bytes": size}


def lists(client, requests):
    chats = json.loads(client.ask("GET", "/api/chats")[0])["items"]
    whole = json.loads(client.ask("GET", f"/api/chats/{chats[0]['id']}")[0])
    words = [word.strip(".") for message in whole["messages"] for word in message["content"].split()]
    chosen = random.Random(0)
    word = lambda: chosen.choice(words)
    chat = lambda: chosen.choice(chats)["id"]
    asked = {
        "GET /api/chats": lambda: ("GET", "/api/chats"),
        "GET /api/chats?limit=50": lambda: ("GET", "/api/chats?limit=50"),
        "GET /api/chats/{id}": lambda: ("GET", f"/api/chats/{chat()}"),
        "GET /api/chats/search": lambda: ("GET", f"/api/chats/search?q={word()}"),
        "GET /api/chats/search, two words": lambda: ("GET", f"/api/chats/search?q={word()}+{word()}"),
        "GET /api/dreams": lambda: ("GET", "/api/dreams?limit=50"),
        "GET /api/journal": lambda: ("GET", "/api/journal"),
        "GET /api/images": lambda: ("GET", "/api/images"),
        "POST /api/search": lambda: ("POST", "/api/search", {"query": f"what did I say about {word()} {word()}", "limit": 10}),
    }
    found = {"chats": len(chats)}
    for name, wish in asked.items():
        found[name] = measure(client, requests, wish)
        print(f"{name}: {found[name]}", file=sys.stderr)
    return found


def said(client):
    """Times of whole replies of the scripted model. An account may send 30 messages at once, and then one every two seconds."""
    times = []
    chats = json.loads(client.ask("GET", "/api/chats")[0])["items"]
    for number in range(SAID):
        if number > 25:
            time.sleep(2)
        body = {"chat_id": chats[number]["id"], "message": f"Good morning number {number}."}
        # An id of a made-up chat is no UUID, and goes on all the same.
        times.append(client.ask("POST", "/api/chat/stream", body)[1])
    return {"p50_ms": percentile(times, 0.5), "max_ms": round(max(times), 1)}


def main():
    azera = sys.argv[1]
    messages = int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
    requests = int(sys.argv[3]) if len(sys.argv) > 3 else 400
    with tempfile.TemporaryDirectory() as folder:
        process = start(azera, folder)
        account, key = make_account(local(folder))
        stop(process)
        fill = [azera, "bench", "fill", "--memories", str(messages), "--account", account, folder]
        subprocess.run(fill, check=True, env=os.environ | {"AZERA_CONFIG": "/dev/null"}, stdout=sys.stderr)
        process = start(azera, folder)
        try:
            client = Client(local(folder)["address"], key)
            found = lists(client, requests)
            found["POST /api/chat/stream, whole reply of the scripted model"] = said(client)
            print(json.dumps({"messages": messages} | found, indent=1))
        finally:
            stop(process)


if __name__ == "__main__":
    main()
