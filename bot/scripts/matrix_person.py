"""A person with a Matrix client, by matrix-nio: reads commands as JSON lines and writes what the person sees as JSON lines.

Usage: matrix_person.py HOMESERVER SECRET NAME STORE

Creates the account if it does not exist. With - for the store, the script only does that, and the account gets no display
name. Each command has an `id` and is answered by {"type": "done", "id": ...}.
"""

import asyncio
import base64
import hashlib
import hmac
import io
import json
import os
import sys
import time
import urllib.error
import urllib.request

import nio
from signedjson import key, sign

PASSWORD = "correct horse"


def call(url, body=None, token=None, method=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=60) as answer:
        return json.load(answer)


def register(homeserver, secret, name, shown=None):
    """Registers an account with the shared secret, unless it exists. Sets a display name only if one is given."""
    url = f"{homeserver}/_synapse/admin/v1/register"
    nonce = call(url)["nonce"]
    mac = hmac.new(secret.encode(), "\0".join([nonce, name, PASSWORD, "notadmin"]).encode(), hashlib.sha1).hexdigest()
    body = {"nonce": nonce, "username": name, "password": PASSWORD, "admin": False, "mac": mac}
    if shown:
        body["displayname"] = shown
    try:
        call(url, body)
    except urllib.error.HTTPError as error:
        if json.load(error)["errcode"] != "M_USER_IN_USE":
            raise


def tell(**event):
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def succeeded(answer):
    if isinstance(answer, nio.ErrorResponse):
        raise RuntimeError(str(answer))
    return answer


class Person:
    def __init__(self, homeserver, name, store):
        os.makedirs(store, exist_ok=True)
        config = nio.AsyncClientConfig(store_sync_tokens=True, encryption_enabled=True)
        self.client = nio.AsyncClient(homeserver, f"@{name}:localhost", store_path=store, config=config)
        self.held = None
        self.send_request, self.client._send = self.client._send, self.send_or_hold
        self.client.add_event_callback(self.heard, nio.Event)
        self.client.add_event_callback(self.invited, nio.InviteMemberEvent)
        self.client.add_ephemeral_callback(self.noticed, (nio.TypingNoticeEvent, nio.ReceiptEvent))

    async def heard(self, room, event):
        source = event.source
        tell(
            type="event",
            room=room.room_id,
            event=event.event_id,
            sender=event.sender,
            state_key=source.get("state_key"),
            kind=source.get("type"),
            content=source.get("content", {}),
            redacts=source.get("redacts") or source.get("content", {}).get("redacts"),
            at=time.monotonic(),
            stored=event.server_timestamp / 1000,
            encrypted=bool(getattr(event, "decrypted", False)) or isinstance(event, nio.MegolmEvent),
            readable=not isinstance(event, nio.MegolmEvent),
        )

    async def invited(self, room, event):
        if event.state_key == self.client.user_id and event.membership == "invite":
            tell(type="invited", room=room.room_id, sender=event.sender)

    async def noticed(self, room, event):
        if isinstance(event, nio.TypingNoticeEvent):
            tell(type="typing", room=room.room_id, users=event.users)
            return
        for receipt in event.receipts:
            tell(type="read", room=room.room_id, event=receipt.event_id, user=receipt.user_id)

    async def create(
        self, invite, encrypted=False, preset="private_chat", history=None, visibility="private", direct=False, space=False,
        predecessor=None,
    ):
        state = []
        if encrypted:
            state.append(nio.EnableEncryptionBuilder().as_dict())
        if history:
            state.append({"type": "m.room.history_visibility", "state_key": "", "content": {"history_visibility": history}})
        answer = await self.client.room_create(
            visibility=nio.RoomVisibility[visibility],
            preset=nio.RoomPreset[preset],
            invite=invite,
            initial_state=state,
            is_direct=direct,
            space=space,
            predecessor=predecessor,
        )
        return {"room": succeeded(answer).room_id}

    async def join(self, room):
        succeeded(await self.client.join(room))
        return {}

    async def leave(self, room):
        succeeded(await self.client.room_leave(room))
        return {}

    async def invite(self, room, user):
        succeeded(await self.client.room_invite(room, user))
        return {}

    async def send(self, room, content, kind="m.room.message", encrypted=False):
        # The sync must also have returned what the homeserver answered.
        while room not in self.client.rooms or self.client.rooms[room].encrypted != encrypted:
            await self.client.synced.wait()
        if encrypted and self.client.should_query_keys:
            await self.client.keys_query()
        answer = await self.client.room_send(room, kind, content, ignore_unverified_devices=True)
        return {"event": succeeded(answer).event_id, "at": time.monotonic()}

    async def send_file(self, room, name, data, encrypted=False, caption=None, kind="m.file", media_type="text/markdown", more=None):
        """Sends a file, given in base64, with more content of its message."""
        data = base64.b64decode(data)
        answer, keys = await self.client.upload(
            io.BytesIO(data), content_type=media_type, filename=name, encrypt=encrypted, filesize=len(data)
        )
        url = succeeded(answer).content_uri
        content = {"msgtype": kind, "body": caption or name, "info": {"mimetype": media_type, "size": len(data)}}
        content.update(more or {})
        if caption:
            content["filename"] = name
        if encrypted:
            content["file"] = {**keys, "url": url}
        else:
            content["url"] = url
        return await self.send(room, content, encrypted=encrypted)

    async def fetch(self, content=None, url=None):
        """Returns the file of a message or of a URL, in base64."""
        file = (content or {}).get("file")
        answer = succeeded(await self.client.download(url or (file or content)["url"]))
        data = answer.body
        if file:
            data = nio.crypto.attachments.decrypt_attachment(data, file["key"]["k"], file["hashes"]["sha256"], file["iv"])
        return {"data": base64.b64encode(data).decode()}

    async def send_many(self, rooms, count, encrypted=False):
        """Sends q0, q1 and so on in all rooms at once, in order in each. Returns the time that took."""
        begun = time.monotonic()

        async def talk(room):
            for number in range(count):
                await self.send(room, {"msgtype": "m.text", "body": f"this is q{number}"}, encrypted=encrypted)

        await asyncio.gather(*(talk(room) for room in rooms))
        return {"seconds": time.monotonic() - begun}

    async def call(self, path, body=None, method=None):
        """Calls any other part of the client-server API."""
        url = f"{self.client.homeserver}/_matrix/client/v3/{path}"
        return {"answer": await asyncio.to_thread(call, url, body, self.client.access_token, method)}

    async def until_backed_up(self, token):
        """Waits until an account's key backup holds keys."""
        url = f"{self.client.homeserver}/_matrix/client/v3/room_keys/version"
        while (await asyncio.to_thread(call, url, None, token))["count"] == 0:
            await asyncio.sleep(0.2)
        return {}

    async def send_or_hold(self, response_class, method, path, data=None, response_data=None, **more):
        if self.held is None or response_class is not nio.ShareGroupSessionResponse:
            return await self.send_request(response_class, method, path, data, response_data, **more)
        self.held.append((method, path, data))
        answer = nio.ShareGroupSessionResponse(*response_data)
        await self.client.receive_response(answer)
        return answer

    async def hold_keys(self):
        """Holds back the keys of messages sent from now on."""
        self.held = []
        return {}

    async def release_keys(self):
        """Sends the keys that were held back."""
        held, self.held = self.held, None
        for method, path, data in held:
            url = f"{self.client.homeserver}{path}"
            token = None if "access_token=" in path else self.client.access_token
            await asyncio.to_thread(call, url, json.loads(data), token, method)
        return {"keys": len(held)}

    async def verify_own_device(self):
        """Creates cross-signing keys for the account and signs this device with them, like a person who verifies it."""
        user, device = self.client.user_id, self.client.device_id

        def make(usage, signed_by=None):
            secret = key.generate_signing_key("new")
            public = key.encode_verify_key_base64(key.get_verify_key(secret))
            secret.version = public
            described = {"user_id": user, "usage": [usage], "keys": {f"ed25519:{public}": public}}
            return secret, sign.sign_json(described, user, signed_by) if signed_by else described

        master, master_key = make("master")
        own, self_signing_key = make("self_signing", master)
        _, user_signing_key = make("user_signing", master)
        keys = {"master_key": master_key, "self_signing_key": self_signing_key, "user_signing_key": user_signing_key}
        proof = {"type": "m.login.password", "identifier": {"type": "m.id.user", "user": user}, "password": PASSWORD}
        try:
            await self.call("keys/device_signing/upload", keys)
        except urllib.error.HTTPError as error:
            proof["session"] = json.load(error)["session"]
            await self.call("keys/device_signing/upload", {**keys, "auth": proof})
        known = (await self.call("keys/query", {"device_keys": {user: []}}))["answer"]["device_keys"][user][device]
        known.pop("unsigned", None)
        answer = await self.call("keys/signatures/upload", {user: {device: sign.sign_json(known, user, own)}})
        if answer["answer"].get("failures"):
            raise RuntimeError(str(answer))
        return {}

    async def redact(self, room, event):
        succeeded(await self.client.room_redact(room, event))
        return {}

    async def state(self, room, kind, content, key=""):
        succeeded(await self.client.room_put_state(room, kind, content, key))
        return {}

    async def run(self):
        succeeded(await self.client.login(PASSWORD, device_name="test"))
        if self.client.should_upload_keys:
            await self.client.keys_upload()
        only = {"room": {"timeline": {"limit": 500}}}
        sync = asyncio.create_task(self.client.sync_forever(timeout=30_000, sync_filter=only, full_state=True))
        await self.client.synced.wait()
        tell(type="ready")
        reader = asyncio.StreamReader(limit=1 << 24)
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            command = json.loads(line)
            number, do = command.pop("id"), command.pop("do")
            if sync.done():
                sync.result()
            try:
                tell(type="done", id=number, **await getattr(self, do)(**command))
            except Exception as error:
                tell(type="failed", id=number, why=repr(error))
        sync.cancel()
        await self.client.close()


def main():
    homeserver, secret, name, store = sys.argv[1:5]
    if store == "-":
        register(homeserver, secret, name)
    else:
        register(homeserver, secret, name, name.capitalize())
        asyncio.run(Person(homeserver, name, store).run())


if __name__ == "__main__":
    main()
