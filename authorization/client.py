"""Calls tools of a protected server with the Python SDK, which logs in when it has to.

    python client.py URL TOOL[:TEXT]...

Prints the page that a person has to open as {"open": URL}, reads where they end up from standard input, and prints
{"text": ...} for each call.
"""

import json
import sys
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, TokenStorage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

REDIRECT = "http://127.0.0.1/callback"


class Memory(TokenStorage):
    """Keeps what it is given."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def say(line: dict[str, str]) -> None:
    print(json.dumps(line), flush=True)


async def show(page: str) -> None:
    say({"open": page})


async def answer() -> AuthorizationCodeResult:
    line = await anyio.to_thread.run_sync(sys.stdin.readline)
    query = {name: values[0] for name, values in parse_qs(urlsplit(line.strip()).query).items()}
    return AuthorizationCodeResult(code=query["code"], state=query.get("state"), iss=query.get("iss"))


async def main(url: str, calls: list[str]) -> None:
    metadata = OAuthClientMetadata(
        client_name="python",
        redirect_uris=[REDIRECT],
        application_type="native",
        token_endpoint_auth_method="none",
        grant_types=["authorization_code", "refresh_token"],
    )
    login = OAuthClientProvider(url, metadata, Memory(), show, answer)
    async with httpx2.AsyncClient(auth=login) as http:
        async with Client(streamable_http_client(url, http_client=http)) as client:
            for call in calls:
                tool, _, text = call.partition(":")
                result = await client.call_tool(tool, {"text": text} if text else {})
                say({"text": result.content[0].text})


anyio.run(main, sys.argv[1], sys.argv[2:])
