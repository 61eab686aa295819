"""Several streams in one topic: each has the records of its own name, and none empties the topic.

A stream that is built anew begins with an empty topic. One that has only the records of a name
cannot: what others wrote there would be gone, or its own would be there twice.
"""

from __future__ import annotations

from collections.abc import Iterable

from mainstem.definitions.model import Definition, Kind
from mainstem.errors import MainstemError


def check_topics(definitions: Iterable[Definition]) -> None:
    """TOPIC_TAKEN when two have one topic and nothing tells their records apart."""
    owners: dict[str, list[Definition]] = {}
    for definition in definitions:
        if definition.kind is Kind.SOURCE:
            continue
        others = owners.setdefault(definition.topic, [])
        for other in others:
            _check_two(definition, other)
        others.append(definition)


def _check_two(definition: Definition, other: Definition) -> None:
    if None in (definition.record, other.record) or definition.record == other.record:
        raise MainstemError(
            "TOPIC_TAKEN",
            location=definition.location,
            topic=definition.topic,
            name=definition.name,
            other=other.name,
        )
    for option in ("partitions", "retention"):
        mine, its = getattr(definition, option), getattr(other, option)
        if mine != its:
            problem = f'"{other.name}" has the same topic and says {its or "nothing"}'
            raise MainstemError(
                "INVALID_OPTION",
                location=definition.location,
                option=option,
                value=mine or "",
                problem=problem,
                advice="A topic has these once: give the same to all streams in it.",
            )


def check_rebuild(definition: Definition, why: str) -> None:
    """TOPIC_SHARED when a stream cannot be built anew, because its topic may have others' records.

    `why` says in a few words what would make it necessary.
    """
    if definition.record is not None:
        raise MainstemError(
            "TOPIC_SHARED",
            location=definition.location,
            name=definition.name,
            topic=definition.topic,
            why=why,
        )
