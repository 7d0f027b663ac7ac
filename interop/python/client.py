"""Calls a stdio server with the Python SDK.

    python client.py legacy|modern|auto -- COMMAND [ARGUMENTS...]

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
from mcp import Client, MCPError, StdioServerParameters
from mcp.types import (
    CallToolResult,
    LoggingMessageNotificationParams,
    PromptReference,
    Request,
    ResourceTemplateReference,
    Result,
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

    def __init__(self, report: Report, era: str, logs: list[LoggingMessageNotificationParams]) -> None:
        self.check = report.check
        self.era = era
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
            ("log messages", self.log_messages),
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


async def main(era: str, command: str, arguments: list[str]) -> int:
    report = Report()
    logs: list[LoggingMessageNotificationParams] = []

    async def on_log(params: LoggingMessageNotificationParams) -> None:
        logs.append(params)

    server = StdioServerParameters(command=command, args=arguments)
    mode = MODERN if era == "modern" else era
    try:
        with anyio.fail_after(TOTAL_SECONDS):
            async with Client(server, mode=mode, logging_callback=on_log, read_timeout_seconds=CALL_SECONDS) as client:
                await Walk(report, era, logs).run(client)
    except Exception as error:
        report.fail("connect, walk and close", describe(error))
    return report.exit_code()


if __name__ == "__main__":
    if len(sys.argv) < 4 or sys.argv[1] not in ("legacy", "modern", "auto") or sys.argv[2] != "--":
        sys.exit(f"usage: {sys.argv[0]} legacy|modern|auto -- COMMAND [ARGUMENTS...]")
    # Logging is deprecated in 2026-07-28 but still part of it, so it is still tested.
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    sys.exit(anyio.run(main, sys.argv[1], sys.argv[3], sys.argv[4:]))
