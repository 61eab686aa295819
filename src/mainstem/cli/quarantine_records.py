"""What the commands of `mainstem quarantine` share: which records, pages, and how they look."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from mainstem.cli.context import Session
from mainstem.cli.output import RowWriter
from mainstem.cli.record_text import iso
from mainstem.errors import MainstemError

_PAGE = 1000
_AGO = re.compile(r"(\d{1,6})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_WIDEST = 70
_DONE = ("id", "outcome", "object", "origin", "problem", "key", "value")

Settle = Callable[[Mapping[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Choice:
    """The records that a command is about."""

    ids: tuple[int, ...]
    filters: dict[str, str]
    """Empty with ids; empty without ids: all."""

    @classmethod
    def of(
        cls,
        ids: Sequence[int] | None,
        stream: str | None,
        stage: str | None,
        cause: str | None,
        since: str | None,
        every: bool,
    ) -> Choice:
        """The choice of a command line; it has to make one, and only one."""
        given = {"stream": stream, "stage": stage, "cause": cause}
        filters = {name: text for name, text in given.items() if text is not None}
        if since is not None:
            filters["since"] = since_time(since)
        if bool(ids) + bool(filters) + every != 1:
            problem = "say which records: IDs, or --stream, --stage, --cause, --since, or --all"
            raise MainstemError("BAD_REQUEST", problem=problem)
        return cls(tuple(sorted(set(ids or ()))), filters)

    def __str__(self) -> str:
        if self.ids:
            return f"{len(self.ids)} record{'' if len(self.ids) == 1 else 's'}"
        chosen = " and ".join(f"{name} {text}" for name, text in self.filters.items())
        return f"all held records{' with ' + chosen if chosen else ''}"

    def requests(self) -> Iterator[dict[str, Any]]:
        """The parts of requests that say which records."""
        for start in range(0, len(self.ids), _PAGE):
            yield {"ids": self.ids[start : start + _PAGE]}
        if not self.ids:
            yield self.filters or {"all": True}


def since_time(text: str) -> str:
    """`2h` as the time two hours ago; every other text as it is."""
    ago = _AGO.fullmatch(text)
    if ago is None:
        return text
    moment = datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    return moment.isoformat()


def pages(session: Session, filters: Mapping[str, str], limit: int) -> Iterator[dict[str, Any]]:
    """Records of the quarantine, newest first, up to `limit`."""
    left, before = limit, None
    while left > 0:
        asked = {**filters, "limit": str(min(left, _PAGE))}
        if before is not None:
            asked["before"] = str(before)
        page = session.client.quarantine(asked)
        yield from page["records"]
        left -= len(page["records"])
        before = page["next"]
        if before is None:
            return


def settle(
    session: Session, choice: Choice, request: Mapping[str, Any], word: str, call: Settle
) -> tuple[int, int]:
    """Replay or discard all that was chosen, in as many calls as it takes.

    Prints what became of each record; gives how many were refused, and of how many.
    """
    done = refused = skipped = 0
    with RowWriter(session.form(), _DONE) as writer:
        for part in choice.requests():
            position: dict[str, Any] = {}
            while True:
                answer = call({**request, **part, **position})
                for record in answer["records"]:
                    writer.row([_cell(record, column) for column in _DONE])
                writer.flush()
                done += answer[word]
                refused += answer["refused"]
                skipped += answer["skipped"]
                if answer["next"] is None:
                    break
                position = {"after": answer["next"], "until": answer["until"]}
    would = "would be " if request.get("dry_run") else ""
    session.say(f"{done} {would}{word}, {refused} refused, {skipped} skipped")
    return refused, done + refused + skipped


def properties(document: Mapping[str, Any]) -> dict[str, Any]:
    """A record of the quarantine as lines of a table."""
    record, settled = document["record"], document["settled"]
    lines = {name: document[name] for name in ("id", "state", "object", "stage", "code", "cause")}
    lines["quarantined"] = document["at"]
    if settled:
        changed = ", changed" if settled["changed"] else ""
        lines[document["state"]] = f"{settled['at']}{changed}"
    lines |= {name: record[name] for name in ("topic", "partition", "offset")}
    lines["time"] = iso(record["timestamp"])
    lines["headers"] = {h["name"]: _shown(h, "value") for h in record["headers"]} or None
    for name in ("key", "value"):
        if f"{name}_base64" in record:
            data = base64.b64decode(record[f"{name}_base64"])
            lines[f"{name} (base64)"] = record[f"{name}_base64"]
            lines[f"{name} (hex)"] = data.hex(" ")
        else:
            lines[name] = record[name]
    return lines


def clipped(cell: Any) -> Any:
    """A cell that leaves room for others; `show` and other formats have the whole text."""
    if isinstance(cell, str) and len(cell) > _WIDEST:
        return cell[: _WIDEST - 1] + "…"
    return cell


def value_of(record: Mapping[str, Any]) -> bytes:
    """The bytes of a record's value."""
    if "value_base64" in record:
        return base64.b64decode(record["value_base64"])
    return (record["value"] or "").encode()


def given_value(value: bytes) -> dict[str, str]:
    """A new value as a part of a request."""
    try:
        return {"value": value.decode("utf-8")}
    except UnicodeDecodeError:
        return {"value_base64": base64.b64encode(value).decode()}


def _cell(record: Mapping[str, Any], column: str) -> Any:
    return _shown(record, column) if column in ("key", "value") else record.get(column)


def _shown(record: Mapping[str, Any], name: str) -> Any:
    if f"{name}_base64" in record:
        return {"base64": record[f"{name}_base64"]}
    return record.get(name)
