"""What the gateway answers to SQL, on the screen: rows, messages, and changes as they happen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mainstem.cli.output import Format, RowWriter, distinct, write, write_pairs

if TYPE_CHECKING:
    from mainstem.cli.context import Session
    from mainstem.client import Event


def show_answer(
    session: Session,
    answer: dict[str, Any],
    form: Format,
    *,
    expanded: bool = False,
    message_is_data: bool = False,
) -> None:
    """Rows on stdout, a message on stderr, unless the message is what was asked for."""
    if answer["kind"] == "message":
        if not message_is_data:
            session.say(answer["message"])
        elif form is Format.TABLE:
            print(answer["message"])
        else:
            write(form, ("message",), [(answer["message"],)], document=answer["detail"])
        return
    columns = [column["name"] for column in answer["columns"]]
    rows = answer["rows"]
    if expanded and form is Format.TABLE:
        for row in rows:
            write_pairs(form, dict(zip(distinct(columns), row, strict=True)), colour=session.colour)
    else:
        write(form, columns, rows, colour=session.colour)
    if form is Format.TABLE:
        session.say(f"{len(rows)} {'row' if len(rows) == 1 else 'rows'}")
        if answer.get("note"):
            session.say(answer["note"])
    for warning in answer.get("warnings") or ():
        session.warn(warning)
    if answer.get("truncated"):
        session.warn(f"only the first {len(rows)} rows are shown; there are more (WHERE, LIMIT)")
    for hint in answer.get("hints", ()):
        session.say(hint["message"])
    if answer.get("freshness"):
        session.say_more(f"freshness: {answer['freshness']}")


def show_stream(rows: Iterable[dict[str, Any]], form: Format) -> None:
    """Rows as they come; the first one says what the columns are."""
    writer: RowWriter | None = None
    try:
        for row in rows:
            if writer is None:
                writer = RowWriter(form, list(row)).__enter__()
            writer.row(list(row.values()))
    finally:
        if writer is not None:
            writer.__exit__()


class Changes:
    """Prints the changes of a push query; `position` is where to go on after them."""

    def __init__(self, session: Session, form: Format) -> None:
        self._session = session
        self._form = form
        self._names: list[str] = []
        self._writer: RowWriter | None = None
        self._in_snapshot = True
        self.position: str | None = None
        self.count = 0

    def show(self, events: Iterable[Event]) -> None:
        """Print until the events end; whatever ends them, the output is left well formed."""
        try:
            for event in events:
                self._take(event)
        finally:
            if self._writer is None and self._form in (Format.JSON, Format.CSV):
                self._open(changes=False)
            if self._writer is not None:
                self._writer.__exit__()

    def _take(self, event: Event) -> None:
        if event.kind == "columns":
            self._names = [column["name"] for column in event.data]
        elif event.kind == "progress":
            self._in_snapshot = self._in_snapshot and not event.data.get("snapshot_complete")
        elif event.kind in ("append", "upsert", "delete"):
            changes = event.kind != "append"
            writer = self._writer or self._open(changes=changes)
            # a deleted row may come as its key alone
            row = {**(event.data.get("key") or {}), **(event.data.get("row") or {})}
            values = [row.get(name) for name in self._names]
            writer.row([event.kind, *values] if changes else values)
            self.count += 1
        # between the row and its flush: whoever has seen the row may rely on the position
        self.position = event.id or self.position
        if self._writer is not None and not self._in_snapshot:
            self._writer.flush()

    def _open(self, *, changes: bool) -> RowWriter:
        names = ["_change", *self._names] if changes else self._names
        self._writer = RowWriter(self._form, names).__enter__()
        return self._writer
