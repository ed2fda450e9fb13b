"""Measures `azera import`: how fast it is, and whether it loses, doubles or misplaces messages.

    import_bench.py AZERA [MESSAGES] [words]

Writes an export in ChatGPT's form with MESSAGES (10,000) messages in conversations of 100, every second one by the
person. Imports it twice into a fresh data folder; then once more into another folder, where the import is killed in
the middle and run again. Checks every message of the person (text, time, scope, one chat for each conversation) and the
number of all messages. With `words`, each import is stopped by Ctrl-C before its messages are embedded, when their words
are searchable. Prints one JSON object. The models are those of the environment (AZERA__MODELS__DIR).
"""

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

IN_CONVERSATION = 100
HALF_A_MESSAGE_BYTES = 3_000
FIRST_S = 1_700_000_000
SCOPE = "dm:console:bench"
WORDS = "harbour lantern gravel orchard copper kettle meadow anchor timber violet saddle candle river quarry".split()


def text(number: int) -> str:
    """A sentence of about twenty words, different for each number."""
    words = [WORDS[(number * step + step) % len(WORDS)] for step in (3, 5, 7, 11, 13)]
    return (
        f"Note {number}: the {words[0]} near the {words[1]} needs a new {words[2]}, and I want to look at the "
        f"{words[3]} with the {words[4]} before week {number % 52}."
    )


def write_export(path: Path, messages: int) -> None:
    conversations = []
    for begin in range(0, messages, IN_CONVERSATION):
        mapping = {"root": {"parent": None, "message": None}}
        before = "root"
        for number in range(begin, min(begin + IN_CONVERSATION, messages)):
            node = f"n{number}"
            mapping[node] = {
                "parent": before,
                "message": {
                    "id": f"m{number}",
                    "author": {"role": "user" if number % 2 == 0 else "assistant"},
                    "create_time": FIRST_S + number,
                    "content": {"content_type": "text", "parts": [text(number)]},
                    "recipient": "all",
                },
            }
            before = node
        conversations.append({"conversation_id": f"c{begin}", "title": f"Talk {begin}", "current_node": before, "mapping": mapping})
    path.write_text(json.dumps(conversations))


class Folder:
    """A data folder."""

    def __init__(self, azera: str, home: Path, name: str, words: bool):
        self.azera, self.home, self.data, self.words = azera, home, home / name, words
        self.env = {**os.environ, "HOME": str(home), "AZERA_CONFIG": "/dev/null"}

    def command(self, *arguments: str) -> list[str]:
        return [self.azera, *arguments, "--data", str(self.data)]

    def run(self, *arguments: str):
        done = subprocess.run(self.command(*arguments), env=self.env, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{arguments}: {done.stderr}")
        return json.loads(done.stdout)

    def import_file(self, path: Path):
        begun = time.monotonic()
        command = self.command("import", str(path), "--as", "Bench", "--json")
        child = subprocess.Popen(command, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        report = child.stdout.readline()
        if self.words:
            child.send_signal(signal.SIGINT)
        _, errors = child.communicate()
        if child.returncode not in ([0, 130] if self.words else [0]):
            raise SystemExit(f"the import failed: {errors}")
        return json.loads(report), time.monotonic() - begun

    def faults(self, messages: int) -> dict:
        """What was lost, doubled or misplaced."""
        check = self.run("memory", "check", "--json")
        stats = self.run("memory", "stats", "--json")
        own = self.run("memory", "export", "--person", "console:bench")["messages"]
        found = Counter(row["text"] for row in own)
        wanted = {text(number): number for number in range(0, messages, 2)}
        chats: dict[int, set[str]] = {}
        misplaced = 0
        for row in own:
            number = wanted.get(row["text"], -1)
            chats.setdefault(number // IN_CONVERSATION, set()).add(row["chat"])
            at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(FIRST_S + number))
            misplaced += row["scope"] != SCOPE or row["at"] != at or row["persona"] != "azera"
        misplaced += sum(len(of_one) != 1 for of_one in chats.values())
        misplaced += len(chats) - len({chat for of_one in chats.values() for chat in of_one})
        return {
            "lost": sum(found[said] == 0 for said in wanted) + max(0, messages - check["record"]["messages"]),
            "doubled": sum(count - 1 for count in found.values()) + max(0, check["record"]["messages"] - messages),
            "misplaced": misplaced,
            "sound": check["good"] and stats["memories"] == messages and (self.words or stats["queued"] == 0),
        }


def kill_in_the_middle(folder: Folder, path: Path, messages: int) -> None:
    """Kills an import when the record has grown by about half of what it will grow by."""
    folder.run("import", str(path), "--as", "Bench", "--json", "--dry-run")
    size = lambda: sum(file.stat().st_size for file in (folder.data / "record").rglob("*") if file.is_file())
    empty = size()
    child = subprocess.Popen(
        folder.command("import", str(path), "--as", "Bench"), env=folder.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while child.poll() is None and size() < empty + messages * HALF_A_MESSAGE_BYTES:
        time.sleep(0.001)
    child.send_signal(signal.SIGKILL)
    child.wait()


def main() -> None:
    azera = str(Path(sys.argv[1]).resolve())
    messages = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    words = sys.argv[3:] == ["words"]
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        path = home / "conversations.json"
        write_export(path, messages)
        whole = Folder(azera, home, "whole", words)
        first, first_s = whole.import_file(path)
        again, again_s = whole.import_file(path)
        killed = Folder(azera, home, "killed", words)
        kill_in_the_middle(killed, path, messages)
        rest, rest_s = killed.import_file(path)
        result = {
            "messages": messages,
            "recorded_per_s": round(messages / first["seconds"]),
            "searchable_by": "words" if words else "words and meaning",
            "searchable_per_s": round(messages / first_s, 1),
            "first": {"added": first["added"], "seconds": round(first_s, 1), **whole.faults(messages)},
            "again": {"added": again["added"], "known": again["known"], "seconds": round(again_s, 1)},
            "after_kill": {"known": rest["known"], "added": rest["added"], "seconds": round(rest_s, 1), **killed.faults(messages)},
        }
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps({**result, "processor_s": round(used.ru_utime + used.ru_stime)}))


if __name__ == "__main__":
    main()
