"""What the Python server has on HTTP besides the shared catalogue (see ../README.md), and the way to serve it."""

import socket
from typing import Annotated

import anyio
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, Resolve, Sample
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.types import CreateMessageResult, JSONRPCMessage, SamplingMessage, TextContent
from pydantic import BaseModel, Field
from starlette.applications import Starlette

NAP_SECONDS = 0.1
RETRY_MS = 200


class Name(BaseModel):
    name: str


def who() -> Elicit[Name]:
    return Elicit("What is your name?", Name)


def riddle() -> Sample:
    question = TextContent(type="text", text="What is the capital of France?")
    return Sample([SamplingMessage(role="user", content=question)], max_tokens=100)


class Events(EventStore):
    """Keeps all events in order, for clients that come back to a stream that was closed."""

    def __init__(self) -> None:
        self.events: list[tuple[str, JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        self.events.append((stream_id, message))
        return str(len(self.events) - 1)

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        last = int(last_event_id)
        if last >= len(self.events):
            return None
        stream_id = self.events[last][0]
        for number, (stream, message) in enumerate(self.events):
            if number > last and stream == stream_id and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream_id


cancellations = 0


async def ask(name: Annotated[Name, Resolve(who)]) -> str:
    return f"Hello, {name.name}!"


async def think(answer: Annotated[CreateMessageResult, Resolve(riddle)]) -> str:
    return answer.content.text


Region = Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]
Floor = Annotated[int, Field(json_schema_extra={"x-mcp-header": "Floor"})]


async def route(region: Region, floor: Floor) -> str:
    return f"{region}, floor {floor}"


async def wait(ctx: Context) -> str:
    global cancellations
    # This tells the caller that the work has begun.
    await ctx.report_progress(1, 2)
    try:
        await anyio.sleep_forever()
    finally:
        cancellations += 1


async def cancelled() -> str:
    return str(cancellations)


async def change(ctx: Context) -> str:
    if ctx.protocol_version == "2026-07-28":
        await ctx.notify_tools_changed()
    else:
        await ctx.session.send_tool_list_changed()
    return "changed"


async def nap(ctx: Context) -> str:
    if ctx.request_context.close_sse_stream is None:
        raise ToolError("there is no stream to close")
    await ctx.close_sse_stream()
    await anyio.sleep(NAP_SECONDS)
    return "rested"


async def drop(ctx: Context) -> str:
    await ctx.close_standalone_sse_stream()
    await ctx.session.send_tool_list_changed()
    return "dropped"


def serve(server: MCPServer) -> None:
    """Serves the catalogue and the tools above, with sessions, and on HTTP+SSE as well."""
    for tool in (ask, think, route, wait, cancelled, change, nap, drop):
        server.add_tool(tool, structured_output=False)
    app = server.streamable_http_app(event_store=Events(), retry_interval=RETRY_MS)
    app.routes.extend(server.sse_app(message_path="/messages/").routes)

    async def sessions() -> str:
        return str(len(server.session_manager._server_instances))

    server.add_tool(sessions, structured_output=False)
    listen(app)


def listen(app: Starlette) -> None:
    """Serves on a free port of the loopback, which is printed."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="critical")).run(sockets=[listener])
