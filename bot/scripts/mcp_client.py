"""Uses Azera's memory through the official `mcp` package, for the tests.

    mcp_client.py < JOB

A job is one JSON object: `command` with `env`, or `url` with `key` and perhaps `persona`; `mode`, as the package calls it;
and `steps`, each `[METHOD, ARGUMENTS]`. Prints one JSON list with what came back.
"""

import asyncio
import json
import sys

import httpx2
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client


def transport(job: dict):
    if "command" in job:
        command, *arguments = job["command"]
        return stdio_client(StdioServerParameters(command=command, args=arguments, env=job["env"]))
    headers = {"Authorization": f"Bearer {job['key']}"}
    if "persona" in job:
        headers["Azera-Persona"] = job["persona"]
    return streamable_http_client(job["url"], http_client=httpx2.AsyncClient(headers=headers, timeout=300, trust_env=False))


async def step(client: Client, method: str, arguments: dict, progress: list):
    async def note(done: float, total: float | None, message: str | None) -> None:
        progress.append(done)

    if method == "call":
        answer = await client.call_tool(arguments["tool"], arguments["arguments"], progress_callback=note)
    else:
        answer = await getattr(client, method)(**arguments)
    return answer.model_dump(mode="json", by_alias=True, exclude_none=True)


async def run(job: dict) -> list:
    came, progress = [], []
    async with Client(transport(job), mode=job["mode"]) as client:
        for method, arguments in job["steps"]:
            try:
                came.append(await step(client, method, arguments, progress))
            except Exception as error:  # What the package raises is what the test asks for.
                came.append({"raised": type(error).__name__, "says": str(error)})
    return [*came, {"progress": progress}]


def main() -> None:
    job = json.load(sys.stdin)
    try:
        came = asyncio.run(run(job))
    except BaseException as error:  # A session that does not begin.
        came = [{"failed": type(error).__name__}]
    json.dump(came, sys.stdout)


if __name__ == "__main__":
    main()
