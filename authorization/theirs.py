"""A protected server of the Python SDK, in both eras.   python theirs.py ISSUER

Takes the tokens of an issuer; with `own` it is its own authorization server, as that SDK has one.
"""

import secrets
import socket
import sys
import time
import warnings

import anyio
import jwt
import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

SCOPES = ["notes:read"]
HOUR = 3600


class Verifier:
    """Takes signed tokens that are for this server."""

    def __init__(self, issuer: str, resource: str) -> None:
        self.issuer, self.resource = issuer, resource
        self.keys = jwt.PyJWKClient(f"{issuer}/jwks")

    async def verify_token(self, token: str) -> AccessToken | None:
        try:
            key = await anyio.to_thread.run_sync(self.keys.get_signing_key_from_jwt, token)
            claims = jwt.decode(token, key, ["ES256"], audience=self.resource, issuer=self.issuer)
        except jwt.PyJWTError:
            return None
        return AccessToken(
            token=token,
            client_id=claims["client_id"],
            scopes=claims.get("scope", "").split(),
            expires_at=claims["exp"],
            resource=self.resource,
            subject=claims["sub"],
        )


class Own:
    """An authorization server that everybody may use, and that renews once with each refresh token."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        code = AuthorizationCode(
            code=secrets.token_urlsafe(32),
            scopes=params.scopes or SCOPES,
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
            subject="somebody",
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client, authorization_code: str) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client, authorization_code: AuthorizationCode) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._give(client, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(self, client, refresh_token: RefreshToken, scopes: list[str]) -> OAuthToken:
        del self.refresh[refresh_token.token]
        return self._give(client, scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.access.pop(token.token, None)
        self.refresh.pop(token.token, None)

    def _give(self, client: OAuthClientInformationFull, scopes: list[str], resource: str | None) -> OAuthToken:
        said = {"client_id": client.client_id, "scopes": scopes, "resource": resource, "subject": "somebody"}
        access = AccessToken(token=secrets.token_urlsafe(32), expires_at=int(time.time()) + HOUR, **said)
        refresh = RefreshToken(token=secrets.token_urlsafe(32), **said)
        self.access[access.token], self.refresh[refresh.token] = access, refresh
        return OAuthToken(
            access_token=access.token, expires_in=HOUR, refresh_token=refresh.token, scope=" ".join(scopes)
        )


def make(issuer: str, port: int) -> MCPServer:
    origin = f"http://127.0.0.1:{port}"
    resource = f"{origin}/mcp"
    settings = AuthSettings(
        issuer_url=origin if issuer == "own" else issuer,
        resource_server_url=resource,
        required_scopes=SCOPES,
        validate_token_resource=True,
        client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=SCOPES),
        revocation_options=RevocationOptions(enabled=True),
    )
    who = {"auth_server_provider": Own()} if issuer == "own" else {"token_verifier": Verifier(issuer, resource)}
    server = MCPServer("theirs", version="2.0", log_level="ERROR", auth=settings, **who)

    @server.tool(description="Says who is calling", structured_output=False)
    async def whoami() -> str:
        token = get_access_token()
        return f"{token.subject}: {' '.join(token.scopes)}"

    return server


def main() -> None:
    warnings.simplefilter("ignore")
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    app = make(sys.argv[1], port).streamable_http_app()
    print(f"http://127.0.0.1:{port}/mcp", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])


main()
