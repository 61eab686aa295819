"""The protocol: a client of the official package in memory, and plain lines to the process."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mainstem.cli.context import Options, Session

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Gateway

SECONDS = 60
mcp = pytest.importorskip("mcp", reason="the package mcp is not installed")


def asked(gateway: Gateway, work: Callable[[Any], Coroutine[Any, Any, Any]], **more: Any) -> Any:
    """What a client in memory got to know; an error of the protocol is an answer, too."""
    from mainstem.mcp.server import server

    made = server(lambda: Session(Options(url=gateway.url)), **{"allow_changes": False, **more})

    async def ask() -> Any:
        async with mcp.Client(made) as client:
            try:
                return await work(client)
            except mcp.MCPError as error:
                return error

    return asyncio.run(asyncio.wait_for(ask(), SECONDS))


def test_only_reading_tools_are_offered(gateway: Gateway) -> None:
    tools = asked(gateway, lambda client: client.list_tools()).tools
    assert {"query", "status", "explain_row"} <= {tool.name for tool in tools}
    assert all(tool.annotations.read_only_hint for tool in tools)
    assert all(tool.input_schema["additionalProperties"] is False for tool in tools)
    more = asked(gateway, lambda client: client.list_tools(), allow_changes=True).tools
    assert {tool.name for tool in more} - {tool.name for tool in tools} == {
        "produce",
        "plan",
        "apply",
        "pause",
        "resume",
    }


def test_an_answer_is_text_and_structure(gateway: Gateway) -> None:
    gateway.answer("GET", "/v1/objects", {"objects": [{"name": "clicks", "kind": "stream"}]})
    result = asked(gateway, lambda client: client.call_tool("list_objects", {}))
    assert not result.is_error
    assert result.structured_content == {"objects": [{"name": "clicks", "kind": "stream"}]}
    assert json.loads(result.content[0].text) == result.structured_content


def test_an_error_of_the_gateway_is_one_of_the_tool(gateway: Gateway) -> None:
    gateway.refuse("GET", "/v1/objects/x", "UNKNOWN_RELATION", 404)
    result = asked(gateway, lambda client: client.call_tool("describe_object", {"name": "x"}))
    assert result.is_error
    problem = result.structured_content["error"]
    assert (problem["title"], problem["detail"], problem["hint"]) == (
        "UNKNOWN_RELATION",
        "what happened",
        "what to do",
    )
    assert result.content[0].text == "UNKNOWN_RELATION: what happened\nhint: what to do"


def test_an_error_inside_does_not_end_the_server(gateway: Gateway) -> None:
    gateway.answer("GET", "/v1/objects", {"objects": [{"no": "name"}]}, {"objects": []})

    async def twice(client: Any) -> Any:
        return [await client.call_tool("list_objects", {}) for _ in range(2)]

    first, second = asked(gateway, twice)
    assert first.structured_content["error"]["title"] == "INTERNAL"
    assert second.structured_content == {"objects": []}


def test_changes_that_are_not_allowed(gateway: Gateway) -> None:
    result = asked(gateway, lambda client: client.call_tool("pause", {"name": "visits"}))
    assert result.structured_content["error"]["title"] == "CHANGES_NOT_ALLOWED"
    assert gateway.requests == []


def test_an_unknown_tool_is_an_error_of_the_protocol(gateway: Gateway) -> None:
    error = asked(gateway, lambda client: client.call_tool("drop", {}))
    assert (error.code, error.message) == (-32602, "there is no tool 'drop'")


def test_resources(gateway: Gateway) -> None:
    gateway.answer("GET", "/v1/objects", {"objects": [{"name": "clicks", "kind": "stream"}]})
    gateway.answer("GET", "/v1/objects/clicks", {"name": "clicks", "sql": "CREATE STREAM clicks"})
    listed = asked(gateway, lambda client: client.list_resources()).resources
    assert [str(one.uri) for one in listed] == ["mainstem://errors", "mainstem://objects/clicks"]
    read = asked(gateway, lambda client: client.read_resource("mainstem://objects/clicks"))
    assert read.contents[0].text == "CREATE STREAM clicks"
    templates = asked(gateway, lambda client: client.list_resource_templates())
    assert len(templates.resource_templates) == 2
    error = asked(gateway, lambda client: client.read_resource("mainstem://nothing"))
    assert (error.code, error.data["title"]) == (-32602, "UNKNOWN_RESOURCE")


@contextmanager
def process(*arguments: str, folder: Path) -> Iterator[Callable[..., dict[str, Any]]]:
    """The command as a process; gives a function that asks it for one thing."""
    environment = {name: text for name, text in os.environ.items() if "MAINSTEM_" not in name}
    with subprocess.Popen(
        [sys.executable, "-m", "mainstem.cli", "mcp", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=environment,
        text=True,
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        number = 0
        watch = threading.Timer(SECONDS, running.kill)
        watch.start()

        def ask(method: str, params: dict[str, Any], *, notify: bool = False) -> dict[str, Any]:
            nonlocal number
            message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
            if not notify:
                number += 1
                message["id"] = number
            assert running.stdin is not None
            assert running.stdout is not None
            running.stdin.write(json.dumps(message) + "\n")
            running.stdin.flush()
            while not notify:
                line = running.stdout.readline()
                assert line, running.stderr and running.stderr.read()
                answer = json.loads(line)
                if answer.get("id") == number:
                    return dict(answer)
            return {}

        try:
            yield ask
            running.stdin.close()
            assert running.wait(SECONDS) == 0
        finally:
            watch.cancel()
            running.kill()


def test_a_process_without_a_stack(project: Path) -> None:
    about = {"name": "test", "version": "1"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about}
    with process(folder=project) as ask:
        result = ask("initialize", hello)["result"]
        assert result["protocolVersion"] == "2025-06-18"
        assert result["serverInfo"]["name"] == "mainstem"
        assert {"tools", "resources"} <= set(result["capabilities"])
        ask("notifications/initialized", {}, notify=True)
        assert "result" in ask("ping", {})
        called = ask("tools/call", {"name": "status", "arguments": {}})["result"]
        assert called["isError"] is True
        assert called["structuredContent"]["error"]["title"] == "NOT_RUNNING"
        assert "mainstem up" in called["content"][0]["text"]
        assert ask("tools/call", {"name": "nothing", "arguments": {}})["error"]["code"] == -32602
        read = ask("resources/read", {"uri": "mainstem://errors/NOT_RUNNING"})["result"]
        assert "mainstem up" in read["contents"][0]["text"]
