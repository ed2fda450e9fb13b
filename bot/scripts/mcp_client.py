"""Uses Azera's memory through the official `mcp` package, for the tests.

    mcp_client.py < JOB

A job is one JSON object: `command` with `env`, or `url` with `key` or `person`, and perhaps `persona`; `mode`, as the package
calls it; and `steps`, each `[METHOD, ARGUMENTS]`. Prints one JSON list with what came back.

With a `person`, the package asks for access by OAuth. A person has the `headers` of a login in a browser, and what they `allow`.
Tokens stay in the file `tokens`, if the job names one.
"""

import asyncio
import json
import pathlib
import sys
from urllib.parse import parse_qs, parse_qsl, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

RETURN = "http://127.0.0.1:4711/callback"


class Storage:
    """Keeps tokens and the registration in a file."""

    def __init__(self, path: str | None) -> None:
        self.path = pathlib.Path(path) if path else None
        self.held = json.loads(self.path.read_text()) if self.path and self.path.exists() else {}

    def keep(self, name: str, value) -> None:
        self.held[name] = value.model_dump(mode="json", exclude_none=True)
        if self.path:
            self.path.write_text(json.dumps(self.held))

    async def get_tokens(self) -> OAuthToken | None:
        return OAuthToken(**self.held["tokens"]) if "tokens" in self.held else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.keep("tokens", tokens)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return OAuthClientInformationFull(**self.held["client"]) if "client" in self.held else None

    async def set_client_info(self, client: OAuthClientInformationFull) -> None:
        self.keep("client", client)


class Browser:
    """The person's browser: shows the page, and decides."""

    def __init__(self, person: dict) -> None:
        self.person, self.location = person, ""

    async def open(self, address: str) -> None:
        parts = urlsplit(address)
        origin = f"{parts.scheme}://{parts.netloc}"
        async with httpx2.AsyncClient(trust_env=False, headers=self.person["headers"]) as browser:
            page = await browser.get(address)
            if page.status_code != 200 or "asks for access" not in page.text:
                raise RuntimeError(f"the page is not there: {page.status_code}")
            asked = await browser.get(f"{origin}/api/oauth/request?{parts.query}")
            asked.raise_for_status()
            print("the person is asked:", asked.text, file=sys.stderr)
            decision = {"request": dict(parse_qsl(parts.query)), "scopes": self.person["allow"]}
            decided = await browser.post(f"{origin}/api/oauth/decision", json=decision)
            decided.raise_for_status()
            self.location = decided.json()["location"]

    async def returned(self) -> AuthorizationCodeResult:
        answer = {name: values[0] for name, values in parse_qs(urlsplit(self.location).query).items()}
        return AuthorizationCodeResult(code=answer.get("code", ""), state=answer.get("state"), iss=answer.get("iss"))


class Provider(OAuthClientProvider):
    """The package's, but it knows when stored tokens end."""

    async def _initialize(self) -> None:
        await super()._initialize()
        if self.context.current_tokens:
            self.context.update_token_expiry(self.context.current_tokens)


def provider(job: dict) -> OAuthClientProvider:
    browser = Browser(job["person"])
    metadata = OAuthClientMetadata(client_name="The SDK", redirect_uris=[RETURN], token_endpoint_auth_method="none")
    return Provider(job["url"], metadata, Storage(job.get("tokens")), browser.open, browser.returned)


def transport(job: dict):
    if "command" in job:
        command, *arguments = job["command"]
        return stdio_client(StdioServerParameters(command=command, args=arguments, env=job["env"]))
    headers, auth = {}, None
    if "person" in job:
        auth = provider(job)
    else:
        headers["Authorization"] = f"Bearer {job['key']}"
    if "persona" in job:
        headers["Azera-Persona"] = job["persona"]
    client = httpx2.AsyncClient(headers=headers, auth=auth, timeout=300, trust_env=False)
    return streamable_http_client(job["url"], http_client=client)


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
        print("the session does not begin:", repr(error), file=sys.stderr)
        came = [{"failed": type(error).__name__}]
    json.dump(came, sys.stdout)


if __name__ == "__main__":
    main()
