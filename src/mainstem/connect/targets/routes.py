"""To which topic, and as what, a row of a Kafka sink goes: by its own columns."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mainstem.connect.targets.target import Shape, key_text
from mainstem.errors import MainstemError, did_you_mean
from mainstem.log.producer import Outgoing
from mainstem.vocabulary import INTERNAL_PREFIX

_PLACE = re.compile(r"\{([^{}]*)\}")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


class NoRouteError(ValueError):
    """A row that has no topic; the text says why."""


@dataclass(frozen=True, slots=True)
class Routes:
    """How records are made of rows."""

    topic: str
    """With `{column}` where the value of a column stands."""
    by: tuple[str, ...]
    """The columns in it."""
    key: str | None
    value: str | None
    headers: tuple[str, ...]

    @staticmethod
    def of(options: Mapping[str, Any], shape: Shape) -> Routes:
        """As the options say; refuses columns that the rows do not have."""
        topic = str(options["topic"] or shape.name)
        routes = Routes(
            topic,
            tuple(_PLACE.findall(topic)),
            options["keyed_by"],
            options["value"],
            options["headers"] or (),
        )
        for option, columns in (
            ("topic", routes.by),
            ("keyed_by", (routes.key,)),
            ("value", (routes.value,)),
            ("headers", routes.headers),
        ):
            _check(option, columns, shape)
        if options["servers"] is None and (not options["topic"] or topic.startswith("{")):
            raise MainstemError(
                "INVALID_OPTION",
                option="topic",
                value=options["topic"] or "",
                problem="in the log of this project, rows could go to topics of its own objects",
                advice="Begin it with a word that no topic begins with: 'by_country.{country}'.",
            )
        return routes

    @property
    def fixed(self) -> bool:
        """True when all rows go to one topic."""
        return not self.by

    @property
    def plain(self) -> bool:
        """True when the row itself is the value, and only `key` says what the key is."""
        return self.fixed and not (self.key or self.value or self.headers)

    def record(
        self, key: str | None, id_: str | None, row: str | None, time: int | None
    ) -> Outgoing:
        """The record of a row; NoRouteError when its columns name no topic."""
        if self.plain:
            return Outgoing(_bytes(key), _bytes(row), timestamp=time)
        fields = json.loads(row or id_ or "{}", parse_float=str)
        if self.key is not None:
            key = _text(fields.get(self.key))
        value = row if self.value is None or row is None else _text(fields.get(self.value))
        return Outgoing(
            _bytes(key),
            _bytes(value),
            topic=self._topic(fields),
            timestamp=time,
            headers=tuple((name, _bytes(_text(fields.get(name)))) for name in self.headers),
        )

    def _topic(self, fields: Mapping[str, Any]) -> str:
        absent = [name for name in self.by if fields.get(name) is None]
        if absent:
            raise NoRouteError(f'"{absent[0]}" is NULL, and names the topic')
        topic = _PLACE.sub(lambda place: _text(fields[place[1]]) or "", self.topic)
        if not _TOPIC.fullmatch(topic) or topic in (".", "..") or topic.startswith(INTERNAL_PREFIX):
            raise NoRouteError(f'"{topic[:100]}" cannot be a topic')
        return topic


def _check(option: str, columns: tuple[str | None, ...], shape: Shape) -> None:
    known = [column.name for column in shape.columns]
    for name in filter(None, columns):
        if name not in known:
            raise MainstemError(
                "UNKNOWN_COLUMN",
                option=option,
                column=name,
                known=", ".join(known),
                suggestion=did_you_mean(name, known),
            )
        if shape.deletes and name not in shape.key:
            raise MainstemError(
                "INVALID_OPTION",
                option=option,
                value=name,
                problem="a deleted row of a table has the columns of its key only",
                advice=f"Use columns of the key: {', '.join(shape.key) or 'it has none'}.",
            )


def _text(value: Any) -> str | None:
    """A value as a text; what is not one as JSON."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def key_of(shape: Shape, id_: str | None) -> str | None:
    """The key of a row's record by the option `key`, or that of its table."""
    if id_ is None or not shape.upserts:
        return None
    return id_ if shape.deletes else key_text(id_)
