"""Calls a server with the Python SDK.

    python client.py legacy|modern|auto -- COMMAND [ARGUMENTS...]
    python client.py legacy|modern|auto http|stateless|sse URL

`legacy` makes the handshake, `modern` speaks 2026-07-28 from the first message, `auto` finds out and must
find 2026-07-28. Prints one JSON line per check and exits non-zero when one fails.
"""

import base64
import json
import logging
import sys
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import (
    CallToolResult,
    CreateMessageResult,
    ElicitResult,
    LoggingMessageNotificationParams,
    PromptReference,
    Request,
    ResourceTemplateReference,
    Result,
    TextContent,
    ToolListChangedNotification,
)

MODERN = "2026-07-28"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
NAMES = ["Ada", "Alan", "Barbara", "Grace", "Linus"]
INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND = -32602, -32601, -32002
# Codes this SDK gives to its own troubles, which no server sends here.
CONNECTION_CLOSED, REQUEST_TIMEOUT = -32000, -32001
# A peer that stops answering must fail the run, not hang it.
TOTAL_SECONDS = 90
CALL_SECONDS = 30
SOON_SECONDS = 0.05
ATTEMPTS = 200


class Report:
    """Counts checks and prints one JSON line for each."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed = 0

    async def check(self, name: str, body: Callable[[], Awaitable[None]]) -> None:
        try:
            await body()
        except Exception as error:
            self.fail(name, describe(error))
        else:
            self.passed += 1
            self.show({"check": name, "ok": True})

    def fail(self, name: str, error: str) -> None:
        self.failed += 1
        self.show({"check": name, "ok": False, "error": error})

    def show(self, line: dict[str, Any]) -> None:
        print(json.dumps(line), flush=True)

    def exit_code(self) -> int:
        # No check at all is a broken harness, which must not look like success.
        return 0 if self.failed == 0 and self.passed > 0 else 1


def describe(error: BaseException) -> str:
    """What happened, out of however many groups it is wrapped in."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


def same(got: Any, expected: Any) -> None:
    if got != expected:
        raise AssertionError(f"expected {expected!r}, got {got!r}")


def holds(condition: bool, otherwise: Any) -> None:
    if not condition:
        raise AssertionError(str(otherwise))


async def refusal(answer: Awaitable[Any]) -> int:
    """The code a request is refused with; fails when it is answered, or when nobody is there to refuse."""
    try:
        result = await answer
    except MCPError as error:
        if error.error.code in (CONNECTION_CLOSED, REQUEST_TIMEOUT):
            raise
        return error.error.code
    raise AssertionError(f"expected a refusal, got {result!r}")


class Walk:
    """The walk through a server that offers the shared catalogue (see ../README.md)."""

    def __init__(self, report: Report, era: str, how: str, logs: list[LoggingMessageNotificationParams]) -> None:
        self.check = report.check
        self.era = era
        self.how = how
        self.modern = era != "legacy"
        self.logs = logs

    async def run(self, client: Client) -> None:
        self.client = client
        checks: list[tuple[str, Callable[[], Awaitable[None]]]] = [
            ("the era is the one asked for", self.negotiated),
            ("tools/list", self.tools_list),
            ("resources/list", self.resources_list),
            ("resources/templates/list", self.templates_list),
            ("prompts/list", self.prompts_list),
            ("tools/call with structured content", self.structured),
            ("tools/call with text", lambda: self.echo('héllo\n"wörld" \u2028 🦀')),
            ("tools/call with 256 KiB", lambda: self.echo("x" * 256 * 1024)),
            ("32 calls at once", self.many_calls),
            ("a tool that fails is a result with isError", self.failing_tool),
            ("arguments that do not fit are a result with isError", self.wrong_arguments),
            ("an unknown tool is refused", self.unknown_tool),
            ("progress", self.progress),
            ("resources/read of text", self.read_text),
            ("resources/read of a blob", self.read_blob),
            ("resources/read of a template", self.read_template),
            ("an unknown resource is refused", self.unknown_resource),
            ("prompts/get", self.prompt),
            ("a prompt without its argument is refused", self.prompt_without_argument),
            ("an unknown prompt is refused", self.unknown_prompt),
            ("completion of a prompt argument", self.complete_prompt),
            ("completion of a template variable", self.complete_template),
            ("an unknown method is -32601", self.unknown_method),
        ]
        # Without a session nobody knows which messages a legacy client wants.
        if self.how != "stateless":
            checks.append(("log messages", self.log_messages))
        if self.modern:
            checks.append(("no log without asking", self.silent_logs))
            checks.append(("subscriptions/listen is acknowledged", self.listen))
        else:
            checks.append(("ping", self.ping))
        for name, body in checks:
            await self.check(name, body)

    async def negotiated(self) -> None:
        same(self.client.protocol_version == MODERN, self.modern)
        # A pinned client asks for nothing when it connects, so it has heard no name yet.
        holds(self.era == "modern" or bool(self.client.server_info and self.client.server_info.name), "no name")

    async def tools_list(self) -> None:
        tools = {tool.name: tool for tool in (await self.client.list_tools()).tools}
        holds({"add", "echo", "fail", "count"} <= tools.keys(), list(tools))
        same(sorted(tools["add"].input_schema["required"]), ["a", "b"])
        holds("sum" in (tools["add"].output_schema or {}).get("properties", {}), "add declares its output")

    async def resources_list(self) -> None:
        uris = {str(resource.uri) for resource in (await self.client.list_resources()).resources}
        holds({"demo://greeting", "demo://logo"} <= uris, uris)

    async def templates_list(self) -> None:
        listed = await self.client.list_resource_templates()
        holds("demo://users/{name}" in [t.uri_template for t in listed.resource_templates], listed)

    async def prompts_list(self) -> None:
        prompts = {prompt.name: prompt for prompt in (await self.client.list_prompts()).prompts}
        same([(a.name, a.required) for a in prompts["greet"].arguments or []], [("name", True)])

    async def call(self, name: str, arguments: dict[str, Any], **options: Any) -> CallToolResult:
        return await self.client.call_tool(name, arguments, **options)

    async def structured(self) -> None:
        result = await self.call("add", {"a": 2, "b": 40})
        same(bool(result.is_error), False)
        same(result.structured_content, {"sum": 42})
        holds("42" in result.content[0].text, result)

    async def echo(self, text: str) -> None:
        result = await self.call("echo", {"text": text})
        same(bool(result.is_error), False)
        same(result.content[0].text, text)

    async def many_calls(self) -> None:
        async with anyio.create_task_group() as group:
            for i in range(32):
                group.start_soon(self.echo, f"call {i}")

    async def failing_tool(self) -> None:
        result = await self.call("fail", {})
        same(result.is_error, True)
        same(result.content[0].type, "text")

    async def wrong_arguments(self) -> None:
        same((await self.call("add", {"a": "two", "b": 40})).is_error, True)

    async def unknown_tool(self) -> None:
        # Older SDKs answer with a failed result, which the early revisions left open.
        try:
            same((await self.call("no-such-tool", {})).is_error, True)
        except MCPError as error:
            same(error.error.code, INVALID_PARAMS)

    async def progress(self) -> None:
        seen: list[float] = []

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            seen.append(progress)

        result = await self.call("count", {"to": 3}, progress_callback=on_progress)
        same(bool(result.is_error), False)
        holds(bool(seen) and seen[-1] <= 3 and seen == sorted(set(seen)), seen)

    async def log_messages(self) -> None:
        if not self.modern:
            await self.client.set_logging_level("debug")
        self.logs.clear()
        await self.call("count", {"to": 2}, meta={LOG_LEVEL: "debug"} if self.modern else None)
        holds(len(self.logs) > 0, "no log message arrived")

    async def silent_logs(self) -> None:
        self.logs.clear()
        await self.call("count", {"to": 2})
        same(self.logs, [])

    async def read(self, uri: str) -> Any:
        contents = (await self.client.read_resource(uri)).contents
        same(len(contents), 1)
        same(str(contents[0].uri), uri)
        return contents[0]

    async def read_text(self) -> None:
        content = await self.read("demo://greeting")
        same((content.mime_type, content.text), ("text/plain", "Hello from Toolwire"))

    async def read_blob(self) -> None:
        content = await self.read("demo://logo")
        same(content.mime_type, "image/png")
        same(base64.b64decode(content.blob)[1:4], b"PNG")

    async def read_template(self) -> None:
        same((await self.read("demo://users/Ada")).text, "Hello, Ada!")

    async def unknown_resource(self) -> None:
        code = await refusal(self.client.read_resource("demo://no/such/resource"))
        holds(code in (INVALID_PARAMS, RESOURCE_NOT_FOUND), code)

    async def prompt(self) -> None:
        messages = (await self.client.get_prompt("greet", {"name": "Ada"})).messages
        same([(m.role, m.content.text) for m in messages], [("user", "Please greet Ada warmly.")])

    async def prompt_without_argument(self) -> None:
        await refusal(self.client.get_prompt("greet"))

    async def unknown_prompt(self) -> None:
        await refusal(self.client.get_prompt("no-such-prompt"))

    async def completed(self, ref: PromptReference | ResourceTemplateReference, value: str) -> list[str]:
        return (await self.client.complete(ref, {"name": "name", "value": value})).completion.values

    async def complete_prompt(self) -> None:
        ref = PromptReference(type="ref/prompt", name="greet")
        same(await self.completed(ref, "A"), ["Ada", "Alan"])
        same(await self.completed(ref, ""), NAMES)

    async def complete_template(self) -> None:
        ref = ResourceTemplateReference(type="ref/resource", uri="demo://users/{name}")
        same(await self.completed(ref, "G"), ["Grace"])

    async def unknown_method(self) -> None:
        request = Request[dict[str, Any] | None, str](method="no/such/method", params=None)
        same(await refusal(self.client.session.send_request(request, Result)), METHOD_NOT_FOUND)

    async def ping(self) -> None:
        await self.client.send_ping()

    async def listen(self) -> None:
        async with self.client.listen(tools_list_changed=True):
            pass


class Lively:
    """What is checked on HTTP besides the walk (see ../README.md)."""

    def __init__(
        self,
        report: Report,
        walk: Walk,
        changes: list[Any],
        requests: list[httpx2.Request],
        streams: list[httpx2.Response],
    ) -> None:
        self.check = report.check
        self.walk = walk
        self.changes = changes
        self.requests = requests
        self.streams = streams

    async def run(self, how: str) -> None:
        await self.check("elicitation", self.elicitation)
        await self.check("sampling", self.sampling)
        await self.check("arguments that are headers as well", self.mirrored)
        await self.check("a call is cancelled", self.cancellation)
        await self.check("a change is told", self.change)
        if how == "http":
            await self.check("a session in the legacy era only", self.session)
        if how == "http" and not self.walk.modern:
            await self.check("a stream that was closed is resumed", self.resumption)
            await self.check("the stream of no request is resumed", self.cut)

    async def said(self, name: str) -> str:
        result = await self.walk.call(name, {})
        same(bool(result.is_error), False)
        return result.content[0].text

    async def elicitation(self) -> None:
        same(await self.said("ask"), "Hello, Ada!")

    async def sampling(self) -> None:
        same(await self.said("think"), "Paris")

    async def mirrored(self) -> None:
        # In the modern era a server refuses the call unless the headers are there and say the same. What a header
        # may have is known from the list.
        await self.walk.client.list_tools()
        for region in ("north", "Zürich ☃"):
            result = await self.walk.call("route", {"region": region, "floor": -3})
            same(result.content[0].text, f"{region}, floor -3")

    async def cancellation(self) -> None:
        before = int(await self.said("cancelled"))
        with anyio.CancelScope() as scope:

            async def begun(progress: float, total: float | None, message: str | None) -> None:
                # Progress says that the tool is at work.
                scope.cancel()

            await self.walk.call("wait", {}, progress_callback=begun)
        holds(scope.cancelled_caught, "the call was not given up")

        async def arrived() -> bool:
            return int(await self.said("cancelled")) == before + 1

        await eventually("the cancellation", arrived)

    async def change(self) -> None:
        if self.walk.modern:
            async with self.walk.client.listen(tools_list_changed=True) as subscription:
                await self.said("change")
                async for _ in subscription:
                    return
            raise AssertionError("the subscription ended")
        self.changes.clear()

        async def told() -> bool:
            # The stream for such messages is opened in its own time, and what is said before is not kept.
            await self.said("change")
            await anyio.sleep(SOON_SECONDS)
            return len(self.changes) > 0

        await eventually("the notification", told)

    async def session(self) -> None:
        named = [request for request in self.requests if "mcp-session-id" in request.headers]
        same(bool(named), not self.walk.modern)

    async def resumption(self) -> None:
        before = self.resumed()
        same(await self.said("nap"), "rested")
        holds(self.resumed() > before, "the client did not come back")

    def resumed(self) -> int:
        """How often the client has taken up a stream again."""
        return len([request for request in self.requests if "last-event-id" in request.headers])

    async def cut(self) -> None:
        # What was said before may still be under way.
        await anyio.sleep(SOON_SECONDS)
        self.changes.clear()
        before = self.resumed()
        # The client does not hear of what is said now, and has to be told when it comes back.
        for stream in self.streams:
            await stream.aclose()
        await self.said("change")

        async def told() -> bool:
            return len(self.changes) > 0

        await eventually("the notification", told)
        same(len(self.changes), 1)
        holds(self.resumed() > before, "the client did not come back")


async def eventually(what: str, done: Callable[[], Awaitable[bool]]) -> None:
    for _ in range(ATTEMPTS):
        if await done():
            return
        await anyio.sleep(SOON_SECONDS)
    raise AssertionError(f"{what} did not happen")


async def ended(url: str, requests: list[httpx2.Request]) -> None:
    """The client has ended its session: the server does not know it any more."""
    named = [request.headers["mcp-session-id"] for request in requests if "mcp-session-id" in request.headers]
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2025-11-25",
        "mcp-session-id": named[-1],
    }
    async with httpx2.AsyncClient() as client:
        ping = {"jsonrpc": "2.0", "id": "late", "method": "ping"}
        same((await client.post(url, headers=headers, json=ping)).status_code, 404)


async def elicit(context: Any, params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": "Ada"})


async def sample(context: Any, params: Any) -> CreateMessageResult:
    return CreateMessageResult(role="assistant", model="interop", content=TextContent(type="text", text="Paris"))


async def main(era: str, how: str, target: str, arguments: list[str]) -> int:
    report = Report()
    logs: list[LoggingMessageNotificationParams] = []
    changes: list[ToolListChangedNotification] = []
    requests: list[httpx2.Request] = []
    streams: list[httpx2.Response] = []

    async def on_log(params: LoggingMessageNotificationParams) -> None:
        logs.append(params)

    async def on_message(message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            changes.append(message)

    async def on_request(request: httpx2.Request) -> None:
        requests.append(request)

    async def on_response(response: httpx2.Response) -> None:
        if response.request.method == "GET":
            streams.append(response)

    mode = MODERN if era == "modern" else era
    hooks = {"request": [on_request], "response": [on_response]}
    watched = httpx2.AsyncClient(timeout=CALL_SECONDS, event_hooks=hooks)
    servers = {
        "--": lambda: StdioServerParameters(command=target, args=arguments),
        "http": lambda: streamable_http_client(target, http_client=watched),
        "stateless": lambda: streamable_http_client(target, http_client=watched),
        "sse": lambda: sse_client(target),
    }
    client = Client(
        servers[how](),
        mode=mode,
        logging_callback=on_log,
        message_handler=on_message,
        elicitation_callback=elicit,
        sampling_callback=sample,
        read_timeout_seconds=CALL_SECONDS,
    )
    try:
        with anyio.fail_after(TOTAL_SECONDS):
            async with watched:
                async with client:
                    walk = Walk(report, era, how, logs)
                    await walk.run(client)
                    if how in ("http", "sse"):
                        await Lively(report, walk, changes, requests, streams).run(how)
                if how == "http" and era == "legacy":
                    await report.check("the session ends", lambda: ended(target, requests))
    except Exception as error:
        report.fail("connect, walk and close", describe(error))
    return report.exit_code()


if __name__ == "__main__":
    eras, hows = ("legacy", "modern", "auto"), ("--", "http", "stateless", "sse")
    if len(sys.argv) < 4 or sys.argv[1] not in eras or sys.argv[2] not in hows:
        sys.exit(f"usage: {sys.argv[0]} legacy|modern|auto -- COMMAND [ARGUMENTS...]\n"
                 f"       {sys.argv[0]} legacy|modern|auto http|stateless|sse URL")
    # Logging is deprecated in 2026-07-28 but still part of it, so it is still tested.
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    sys.exit(anyio.run(main, sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]))
