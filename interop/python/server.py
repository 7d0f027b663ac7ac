"""Serves the shared catalogue with the Python SDK, in both eras.   python server.py [http|stateless]

On stdio; with `http` on Streamable HTTP at /mcp and on HTTP+SSE at /sse; with `stateless` without sessions.
"""

import base64
import logging
import sys
import warnings

import lively
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import Completion, EmptyResult, SetLevelRequestParams
from pydantic import BaseModel

NAMES = ["Ada", "Alan", "Barbara", "Grace", "Linus"]
# The smallest PNG there is: one transparent pixel.
LOGO = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)

server = MCPServer("interop-python", version="1.0.0", log_level="ERROR")


class Sum(BaseModel):
    sum: int


@server.tool(description="Adds two integers")
async def add(a: int, b: int) -> Sum:
    return Sum(sum=a + b)


@server.tool(description="Returns the text it is given", structured_output=False)
async def echo(text: str) -> str:
    return text


@server.tool(description="Always fails", structured_output=False)
async def fail() -> str:
    raise ToolError("this tool always fails")


@server.tool(description="Counts and tells how far it is", structured_output=False)
async def count(to: int, ctx: Context) -> str:
    for progress in range(1, to + 1):
        await ctx.report_progress(progress, to)
        await ctx.info(f"counted to {progress}", logger_name="count")
    return f"counted to {to}"


@server.resource("demo://greeting", mime_type="text/plain")
def greeting() -> str:
    return "Hello from Toolwire"


@server.resource("demo://logo", mime_type="image/png")
def logo() -> bytes:
    return LOGO


@server.resource("demo://users/{name}", mime_type="text/plain")
def user(name: str) -> str:
    return f"Hello, {name}!"


@server.prompt(description="Asks for a greeting")
def greet(name: str) -> str:
    return f"Please greet {name} warmly."


@server.completion()
async def complete(ref, argument, context):
    return Completion(values=[name for name in NAMES if name.startswith(argument.value)])


async def set_level(ctx, params: SetLevelRequestParams) -> EmptyResult:
    return EmptyResult()


# This SDK's high-level server sends logs but offers no way to say so in the handshake, and a client
# may only set the level of a server that does. The level itself changes nothing: `count` logs at info.
server._lowlevel_server.add_request_handler("logging/setLevel", SetLevelRequestParams, set_level)


if __name__ == "__main__":
    # Logging is deprecated in 2026-07-28 but still part of it, so it is still tested.
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    if sys.argv[1:] == ["http"]:
        lively.serve(server)
    elif sys.argv[1:] == ["stateless"]:
        lively.listen(server.streamable_http_app(stateless_http=True))
    else:
        server.run("stdio")
