"""Shows Azera on a Matrix homeserver of its own on this machine: an encrypted room, a restart, and what it then recalls.

Usage: demo_matrix.py AZERA FOLDER, with AZERA_TEST_SYNAPSE naming the folder that synapse.sh installed into.
"""

import asyncio
import logging
import os
import socket
import subprocess
import sys

sys.path.insert(0, os.environ["AZERA_TEST_SYNAPSE"])

import nio  # noqa: E402

import matrix_person  # noqa: E402

# matrix-nio logs each device that it makes a session with.
logging.getLogger("nio").setLevel(logging.ERROR)

HERE = os.path.dirname(os.path.abspath(__file__))
SECRET = "loopback-only"
PATIENCE = 180


def say(text):
    print(f"==> {text}", flush=True)


def start_homeserver(folder):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["bash", f"{HERE}/synapse.sh", "serve", os.environ["AZERA_TEST_SYNAPSE"], f"{folder}/synapse", str(port)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if process.stdout.readline().strip() != "ready":
        sys.exit("demo: the homeserver did not start")
    return process, f"http://127.0.0.1:{port}"


def start_bot(azera, folder, homeserver):
    environment = dict(
        os.environ,
        AZERA__MATRIX__HOMESERVER=homeserver,
        AZERA__MATRIX__USER="azera",
        AZERA__MATRIX__PASSWORD=matrix_person.PASSWORD,
        AZERA__MEMORY__MIN_AGE_S="0",
        AZERA_CONFIG="/dev/null",
        AZERA_LOG="error",
    )
    process = subprocess.Popen([azera, "run", "--data", f"{folder}/azera"], env=environment, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if "Azera listens" in line:
            return process
        sys.stderr.write(line)
    sys.exit("demo: the bot did not start")


class Ann(matrix_person.Person):
    """Ann, a person who waits for each answer."""

    def __init__(self, homeserver, folder):
        super().__init__(homeserver, "ann", f"{folder}/ann")
        self.said = {}
        self.changed = asyncio.Event()

    async def heard(self, room, event):
        content = event.source.get("content", {})
        if event.sender == "@azera:localhost" and event.source.get("type") == "m.room.message":
            edited = content.get("m.relates_to", {}).get("rel_type") == "m.replace"
            of = content["m.relates_to"]["event_id"] if edited else event.event_id
            self.said[of] = content.get("m.new_content", content)["body"]
        self.changed.set()

    async def invited(self, room, event):
        pass

    async def noticed(self, room, event):
        pass

    async def until(self, reached):
        async with asyncio.timeout(PATIENCE):
            while not reached():
                self.changed.clear()
                await self.changed.wait()

    async def enter(self):
        await self.client.login(matrix_person.PASSWORD, device_name="demo")
        await self.client.keys_upload()
        only = {"room": {"timeline": {"limit": 500}}}
        self.sync = asyncio.create_task(self.client.sync_forever(timeout=30_000, sync_filter=only, full_state=True))
        await self.client.synced.wait()

    async def room_with_azera(self):
        room = (await self.create(["@azera:localhost"], encrypted=True, preset="trusted_private_chat", direct=True))["room"]
        here = lambda: room in self.client.rooms and "@azera:localhost" in self.client.rooms[room].users
        invited = lambda: "@azera:localhost" in getattr(self.client.rooms.get(room), "invited_users", {})
        await self.until(lambda: here() and not invited())
        return room

    async def ask(self, room, text):
        print(f"Ann: {text}", flush=True)
        before = len(self.said)
        await self.send(room, {"msgtype": "m.text", "body": text}, encrypted=True)
        await self.until(lambda: len(self.said) > before)
        # An answer is finished when it has not changed for a while: it streams once a second.
        last = None
        while last != list(self.said.values())[-1]:
            last = list(self.said.values())[-1]
            await asyncio.sleep(3)
        print(f"Azera: {last}", flush=True)


async def show(azera, folder):
    say("starting a homeserver on this machine")
    homeserver, url = start_homeserver(folder)
    matrix_person.register(url, SECRET, "azera")
    matrix_person.register(url, SECRET, "ann", "Ann")
    say("starting Azera")
    bot = start_bot(azera, folder, url)
    try:
        ann = Ann(url, folder)
        await ann.enter()
        say("an encrypted room")
        room = await ann.room_with_azera()
        await ann.ask(room, "Hi! I moved to Lisbon last month, and my new boat is called Petrichor.")
        await ann.ask(room, "The marina gate code is 4471, by the way.")
        say("stopping Azera, and starting it again")
        bot.terminate()
        bot.wait()
        bot = start_bot(azera, folder, url)
        say("another encrypted room")
        other = await ann.room_with_azera()
        await ann.ask(other, "What did I call my boat?")
        await ann.ask(other, "What is the marina gate code?")
        ann.sync.cancel()
        await ann.client.close()
    finally:
        bot.terminate()
        bot.wait()
        homeserver.stdin.close()
        homeserver.wait()


if __name__ == "__main__":
    asyncio.run(show(sys.argv[1], sys.argv[2]))
