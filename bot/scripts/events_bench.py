#!/usr/bin/env python3
"""Measures what idle clients of `GET /api/events` cost: resident memory and processor time.

Usage: python3 bot/scripts/events_bench.py AZERA [CLIENTS]

It starts AZERA with a scripted model in a folder of its own, makes an account and a key, and opens CLIENTS (1000) streams at
15 a second, because one address may send 20 requests a second. Linux only: it reads /proc.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import urllib.request

SETTLE_S = 20
MEASURE_S = 60


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


def post(address, path, body, headers):
    headers = {"Content-Type": "application/json"} | headers
    request = urllib.request.Request(address + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer), answer.headers


def make_key(local):
    account = {"code": local["setup"].split("=")[-1], "name": "Ann", "password": "correct horse battery"}
    session, headers = post(local["address"], "/api/setup", account, {})
    cookie = headers["Set-Cookie"].split(";")[0]
    wanted = {"name": "events", "scopes": ["chat"]}
    key, _ = post(local["address"], "/api/keys", wanted, {"Cookie": cookie, "X-CSRF-Token": session["csrf"]})
    return key["key"]


def resident_mb(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))


def cpu_s(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def idle(pid):
    """Returns resident memory in MB and processor time in percent while nothing happens."""
    await asyncio.sleep(SETTLE_S)
    before = cpu_s(pid)
    await asyncio.sleep(MEASURE_S)
    return round(resident_mb(pid), 1), round((cpu_s(pid) - before) / MEASURE_S * 100, 2)


async def follow(host, key):
    reader, writer = await asyncio.open_connection(*host.split(":"))
    writer.write(f"GET /api/events HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\n\r\n".encode())
    status = await reader.readline()
    if b" 200 " not in status:
        sys.exit(f"A client was refused: {status!r}")
    return reader, writer


async def measure(pid, host, key, clients):
    memory, processor = await idle(pid)
    print(f"without clients: {memory} MB, {processor} % of one core")
    streams = []
    for number in range(clients):
        if number % 15 == 14:
            await asyncio.sleep(1)
        streams.append(await follow(host, key))
    with_clients, processor = await idle(pid)
    print(f"with {len(streams)} clients: {with_clients} MB (+{with_clients - memory:.1f}), {processor} % of one core")


def main():
    azera, clients = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    with tempfile.TemporaryDirectory() as folder:
        process = start(azera, folder)
        try:
            with open(os.path.join(folder, "web.json")) as file:
                local = json.load(file)
            host = local["address"].split("//")[1]
            asyncio.run(measure(process.pid, host, make_key(local), clients))
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
