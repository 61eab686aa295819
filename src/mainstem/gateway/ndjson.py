"""Records that come as lines of JSON, as many as there are, while they come.

Lines are written in parts of up to a thousand, each all or none, and each with a receipt. A client
that does not read its receipts before it has sent all its lines is not waited for: receipts that
nobody has taken yet become one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from mainstem.errors import MainstemError
from mainstem.gateway.front import ANY_LENGTH, NDJSON

PART_RECORDS = 1_000
PART_BYTES = 1024 * 1024
_SILENCE_SECONDS = 0.2
"""A part that is not full is written when no line has come for so long."""


@dataclass(slots=True)
class Written:
    """What has become of some records: of them all, or of those since the last receipt."""

    first: int = 0
    count: int = 0
    repeated: int = 0
    offsets: dict[int, int] = field(default_factory=dict)

    def add(self, other: Written) -> None:
        """The next records, too."""
        if not self.count:
            self.first = other.first
        self.count += other.count
        self.repeated += other.repeated
        self.offsets |= other.offsets

    def told(self) -> dict[str, Any]:
        """As a line of the answer."""
        return {
            "first": self.first,
            "written": self.count,
            "repeated": self.repeated,
            "offsets": {str(p): offset for p, offset in sorted(self.offsets.items())},
        }


WritePart = Callable[[int, int, bytes], Written]
"""Number of the part, index of its first record, its lines; called in a thread of its own."""


class LinesWritten(Response):
    """Writes the lines of a request and answers with receipts; the last line has `done`.

    What is wrong with the first part is an answer of its own. Later it is a line with `error`.
    """

    media_type = NDJSON

    def __init__(self, write: WritePart, longest_line: int, *, prompt: bool) -> None:
        super().__init__()
        self._write = write
        self._longest = longest_line
        self._prompt = prompt

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take, write and tell, until the lines end."""
        scope[ANY_LENGTH] = True
        telling = _Telling(send, self.media_type or NDJSON)
        whole = Written()
        try:
            number = 0
            async for lines in parts(receive, self._longest, prompt=self._prompt):
                count = lines.count(b"\n")
                written = await asyncio.to_thread(self._write, number, whole.count, lines)
                assert written.count == count
                whole.add(written)
                telling.add(written)
                number += 1
            if not number:
                raise MainstemError("BAD_REQUEST", problem="there is no line with a record")
            await telling.end({**whole.told(), "done": True})
        except MainstemError as error:
            if not telling.begun:
                raise
            await telling.end({**whole.told(), "error": error.problem()})
        finally:
            telling.stop()


async def parts(receive: Receive, longest: int, *, prompt: bool) -> AsyncIterator[bytes]:
    """The lines of a body, each with its end, together as they are to be written.

    Where a part ends depends on the lines alone, unless it must be `prompt`.
    """
    lines: list[bytes] = []
    size, rest, more = 0, b"", True
    coming = asyncio.ensure_future(receive())
    try:
        while more:
            waiting = _SILENCE_SECONDS if prompt and lines else None
            done, _ = await asyncio.wait((coming,), timeout=waiting)
            if not done:
                yield b"".join(lines)
                lines, size = [], 0
                continue
            message = coming.result()
            if message["type"] != "http.request":  # the client left: a last half line is no record
                break
            more = message.get("more_body", False)
            if more:
                coming = asyncio.ensure_future(receive())
            pieces = (rest + message.get("body", b"")).split(b"\n")
            rest = pieces.pop() if more else b""
            if len(rest) > longest:
                raise MainstemError("LINE_TOO_LONG", limit=longest)
            for piece in pieces:
                line = piece.strip()
                if not line:
                    continue
                if len(line) > longest:
                    raise MainstemError("LINE_TOO_LONG", limit=longest)
                lines.append(line + b"\n")
                size += len(line)
                if len(lines) >= PART_RECORDS or size >= PART_BYTES:
                    yield b"".join(lines)
                    lines, size = [], 0
        if lines:
            yield b"".join(lines)
    finally:
        coming.cancel()


class _Telling:
    """Sends receipts beside the writing."""

    def __init__(self, send: Send, media_type: str) -> None:
        self._send = send
        self._type = media_type
        self._due = Written()
        self._last: Mapping[str, Any] | None = None
        self._some = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def begun(self) -> bool:
        """True when the answer has begun."""
        return self._task is not None

    def add(self, written: Written) -> None:
        """Tell of these, alone or with others."""
        self._due.add(written)
        self._some.set()
        if self._task is None:
            self._task = asyncio.create_task(self._tell())

    async def end(self, last: Mapping[str, Any]) -> None:
        """The last line, behind all receipts."""
        self._last = last
        self._some.set()
        if self._task is not None:
            await self._task

    def stop(self) -> None:
        """Tell no more."""
        if self._task is not None:
            self._task.cancel()

    async def _tell(self) -> None:
        headers = [(b"content-type", self._type.encode()), (b"cache-control", b"no-store")]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        while True:
            await self._some.wait()
            self._some.clear()
            due, self._due = self._due, Written()
            if due.count:
                await self._line(due.told(), more=True)
            if self._last is not None and not self._due.count:  # some may have come meanwhile
                break
        await self._line(self._last, more=False)

    async def _line(self, document: Mapping[str, Any], *, more: bool) -> None:
        body = json.dumps(document).encode() + b"\n"
        await self._send({"type": "http.response.body", "body": body, "more_body": more})
