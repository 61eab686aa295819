"""Completion in the SQL shell: keywords, and objects and columns as the gateway knows them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from mainstem.cli.context import Session
from mainstem.client import Client
from mainstem.errors import MainstemError

KEYWORDS = (
    "AND", "APPLY LATE", "AS", "AS OF OFFSETS", "AS OF TIMESTAMP", "ASC", "BACKFILL", "BETWEEN",
    "BY", "CASCADE", "CASE", "CAST", "CONNECTOR", "CREATE", "CREATE INDEX",
    "DESC", "DESCRIBE", "DISTINCT", "DROP",
    "ELSE", "EMIT CHANGES", "END", "EXPLAIN", "EXPLAIN ROW", "FROM", "GROUP BY", "HAVING",
    "IF EXISTS", "IF NOT EXISTS", "IN", "INSERT INTO", "IS NULL", "JOIN", "LIKE", "LIMIT", "NOT",
    "NULL", "ON", "OR", "ORDER BY", "PAUSE", "PRIMARY KEY", "RESUME", "SELECT", "SHOW BACKFILLS",
    "SHOW CONNECTORS", "SHOW FLOWS", "SHOW FUNCTIONS", "SHOW INDEXES",
    "SHOW SINKS", "SHOW SOURCES", "SHOW STREAMS",
    "SHOW TABLES", "SHOW TOPICS", "SINK", "SOURCE", "STREAM", "TABLE", "THEN", "TRANSFORM",
    "UNION ALL", "VALUES", "WHEN", "WHERE", "WITH",
)  # fmt: skip
COMMANDS = ("\\d", "\\q", "\\timing", "\\watch", "\\x", "\\?")
_WORD = re.compile(r"[A-Za-z_][\w-]*$|\\\w*$")
_FRESH_SECONDS = 5.0


class SqlCompleter(Completer):
    """Asks the gateway for names at most every few seconds; without one, keywords still work."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._names: list[tuple[str, str]] = []
        self._read_at = float("-inf")

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """Everything that begins like the word before the cursor; objects and columns first."""
        match = _WORD.search(document.text_before_cursor)
        word = match.group() if match else ""
        if word.startswith("\\"):
            yield from (Completion(c, -len(word)) for c in COMMANDS if c.startswith(word))
            return
        for name, what in self._known():
            if name.lower().startswith(word.lower()):
                yield Completion(name, -len(word), display_meta=what)
        if word:
            for keyword in KEYWORDS:
                if keyword.startswith(word.upper()):
                    yield Completion(keyword, -len(word))

    def _known(self) -> list[tuple[str, str]]:
        if time.monotonic() - self._read_at > _FRESH_SECONDS:
            self._read_at = time.monotonic()
            try:
                # a short patience of its own: a key press must not wait for a slow gateway
                with Client(self._session.url, timeout=1.0) as client:
                    self._names = _names(client)
            except MainstemError:
                self._names = []
        return self._names


def _names(client: Client) -> list[tuple[str, str]]:
    objects = client.objects()
    columns: dict[str, str] = {}
    for found in objects:
        for column in found["columns"]:
            columns.setdefault(column["name"], f"{column['type']} in {found['name']}")
    return [(o["name"], o["kind"]) for o in objects] + sorted(columns.items())
