"""Measures how many `recall` calls a second `azera mcp` answers, over stdio.

    recall_bench.py AZERA FOLDER [SECONDS] [CALLS_AT_ONCE]

FOLDER holds made-up memories of one person: azera bench fill --memories 100000 --as Bench FOLDER. For SECONDS (60) it keeps
CALLS_AT_ONCE (16) calls under way, twice: first with questions that nobody asked before, each of which the embedding model
reads; then with 100 questions again and again, whose embeddings Azera still has. Each question has five words of the memories.
A call is an error if its answer is one, or finds nothing. Prints one JSON object. The models are those of the environment
(AZERA__MODELS__DIR).

What it measures is the whole way of a call: JSON-RPC over a pipe, the tool, the embedding of the question, recall with the
person's read scope, and the structured answer. It measures no HTTP: there, the web lets one account make 20 requests a second.
"""

import json
import random
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

REPEATED = 100
WORDS_OF_A_QUESTION = 5


class Server:
    """`azera mcp`, and the calls under way."""

    def __init__(self, azera: str, folder: str) -> None:
        command = [azera, "mcp", "--as", "Bench", "--data", folder]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.answered = threading.Condition()
        self.answers: dict[int, tuple[float, dict]] = {}
        self.next_id = 0
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        for line in self.process.stdout:
            at, answer = time.perf_counter(), json.loads(line)
            if "id" in answer and ("result" in answer or "error" in answer):
                with self.answered:
                    self.answers[answer["id"]] = (at, answer)
                    self.answered.notify_all()

    def send(self, method: str, params: dict, is_call: bool = True) -> int:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if is_call:
            self.next_id += 1
            message["id"] = self.next_id
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        return self.next_id

    def wait(self, wanted: int) -> dict:
        with self.answered:
            self.answered.wait_for(lambda: wanted in self.answers)
            return self.answers.pop(wanted)[1]

    def begin(self) -> None:
        client = {"name": "recall-bench", "version": "1"}
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
        self.wait(self.send("initialize", hello))
        self.send("notifications/initialized", {}, is_call=False)

    def recall(self, question: str) -> int:
        return self.send("tools/call", {"name": "recall", "arguments": {"query": question, "limit": 10}})

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def is_error(answer: dict) -> bool:
    result = answer.get("result", {})
    return "error" in answer or result.get("isError", False) or not result.get("structuredContent", {}).get("memories")


def measure(server: Server, questions, seconds: float, at_once: int) -> dict:
    """Keeps `at_once` calls under way for a while."""
    times, errors = [], 0
    begun = time.perf_counter()
    under_way: dict[int, float] = {}
    while True:
        while len(under_way) < at_once and time.perf_counter() - begun < seconds:
            sent = time.perf_counter()
            under_way[server.recall(next(questions))] = sent
        if not under_way:
            break
        with server.answered:
            server.answered.wait_for(lambda: bool(server.answers))
            came, server.answers = server.answers, {}
        for number, (at, answer) in came.items():
            times.append((at - under_way.pop(number)) * 1_000)
            errors += is_error(answer)
    took = time.perf_counter() - begun
    times.sort()
    return {
        "calls": len(times),
        "errors": errors,
        "calls_a_second": round(len(times) / took, 1),
        "p50_ms": round(times[len(times) // 2], 1),
        "p99_ms": round(times[int(len(times) * 0.99)], 1),
    }


def words_of(server: Server) -> list[str]:
    """Returns words that stand in the memories."""
    words: set[str] = set()
    cursor = None
    for _ in range(20):
        given = {"limit": 100} | ({"cursor": cursor} if cursor else {})
        page = server.wait(server.send("tools/call", {"name": "list", "arguments": given}))["result"]["structuredContent"]
        for memory in page["memories"]:
            words.update(memory["text"].rstrip(".").split())
        cursor = page.get("next_cursor")
    return sorted(words)


def main() -> None:
    azera, folder = sys.argv[1:3]
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 60.0
    at_once = int(sys.argv[4]) if len(sys.argv) > 4 else 16
    filled = json.loads((Path(folder) / "filled.json").read_text())
    server = Server(azera, folder)
    server.begin()
    choice = random.Random(1)
    words = words_of(server)

    def question() -> str:
        return f"What did I say about {' '.join(choice.sample(words, WORDS_OF_A_QUESTION))}?"

    def new():
        while True:
            yield question()

    repeated = [question() for _ in range(REPEATED)]

    def again():
        while True:
            yield choice.choice(repeated)

    first = measure(server, new(), seconds, at_once)
    for known in repeated:
        server.wait(server.recall(known))
    second = measure(server, again(), seconds, at_once)
    server.end()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps({
        "memories": filled["memories"],
        "seconds": seconds,
        "calls_at_once": at_once,
        "new_questions": first,
        "repeated_questions": second,
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
    }))


if __name__ == "__main__":
    main()
