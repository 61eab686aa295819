"""How `mainstem produce` writes: objects through the gateway, raw lines straight to a topic."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mainstem.cli.context import Session
from mainstem.cli.lines import Line, batches, numbered, parse_object
from mainstem.errors import MainstemError
from mainstem.receipts import Receipt, merge_receipts, read_receipt, write_receipt

if TYPE_CHECKING:
    from mainstem.log.producer import Outgoing


def write_objects(
    session: Session, name: str, source: Iterable[bytes], *, file: str, key: str | None
) -> None:
    """Write JSON lines to a stream; all of a batch or nothing of it."""
    progress = Progress(session, name)
    receipts: list[Receipt] = []
    try:
        for batch in batches(numbered(source)):
            try:
                done = _send(session, name, [_record(line, file, key) for line in batch])
                progress.add(int(done["written"]))
                receipts.append(read_receipt(done.get("receipt", "")))
            except MainstemError as error:
                if error.code == "UNKNOWN_RELATION":
                    session.say(f"{name} is not a stream; --raw writes to a topic of that name")
                raise _with_line(error, batch, file) from None
    finally:
        progress.done()
        session.say_more(f"receipt: {write_receipt(merge_receipts(receipts))}")


def _record(line: Line, file: str, key: str | None) -> bytes:
    """The line inside a request, byte by byte as it was: its numbers keep all their digits."""
    value = parse_object(line, file)
    if key is None:
        return b'{"value":' + line.data + b"}"
    if key not in value:
        raise MainstemError("BAD_LINE", file=file, line=line.number, problem=f'no field "{key}"')
    return b'{"key":' + json.dumps(value[key]).encode() + b',"value":' + line.data + b"}"


def _send(session: Session, name: str, records: list[bytes]) -> dict[str, Any]:
    body = b'{"records":[' + b",".join(records) + b"]}"
    return session.client.write(name, body)


def _with_line(error: MainstemError, batch: list[Line], file: str) -> MainstemError:
    """The gateway counts records of a request; the user counts lines of a file."""
    first = f"nothing from line {batch[0].number} on was written"
    if error.code == "BAD_LINE":
        problem = f"{error.params['problem']} ({first})"
        return MainstemError("BAD_LINE", **{**error.params, "problem": problem})
    index = str(error.params.get("index", ""))
    if error.code != "INVALID_RECORD" or not index.isdigit() or int(index) >= len(batch):
        return error
    problem = f"{error.params['problem']} ({first})"
    return MainstemError("BAD_LINE", file=file, line=batch[int(index)].number, problem=problem)


def write_raw(
    session: Session, topic: str, source: Iterable[bytes], *, separator: str | None
) -> None:
    """Write lines as bytes to a topic, with the key before the separator when one is given."""
    from mainstem.log.admin import Admin
    from mainstem.log.producer import Producer

    admin = Admin(session.connection)
    try:
        if admin.topic(topic) is None:
            raise MainstemError("UNKNOWN_TOPIC", topic=topic, suggestion="")
    finally:
        admin.close()
    mark = None if separator is None else separator.encode().decode("unicode_escape").encode()
    progress = Progress(session, topic)
    producer = Producer(session.connection)
    try:
        for batch in batches(numbered(source)):
            producer.send(topic, [_outgoing(line, mark) for line in batch], session.timeout)
            progress.add(len(batch))
    finally:
        producer.close()
        progress.done()


def _outgoing(line: Line, separator: bytes | None) -> Outgoing:
    from mainstem.log.producer import Outgoing

    if separator is None:
        return Outgoing(key=None, value=line.data)
    key, found, value = line.data.partition(separator)
    if not found:
        return Outgoing(key=None, value=line.data)
    return Outgoing(key=key, value=value)


class Progress:
    """How many records are written: while it runs on a terminal, and once at the end."""

    def __init__(self, session: Session, name: str) -> None:
        self._session = session
        self._name = name
        self._written = 0
        self._began = time.monotonic()
        self._live = sys.stderr.isatty() and not session.options.quiet

    def add(self, records: int) -> None:
        """So many more."""
        self._written += records
        if self._live:
            sys.stderr.write(f"\r{self._written:,} records")
            sys.stderr.flush()

    def done(self) -> None:
        """The last word."""
        seconds = time.monotonic() - self._began
        lead = "\r" if self._live else ""
        done = f"{self._written:,} records written to {self._name} in {seconds:.1f} s"
        self._session.say(lead + done)
