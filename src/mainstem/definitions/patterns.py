"""Patterns of topic names: `*.*.chat`, `nyc.**`, `{city}.{group}.chat`.

A pattern is written in parts, like the topics that it stands for. `*` is exactly one part, `{name}`
one part that becomes a column of that name, `**` one part or more; anything else is itself. Topics
that belong to Mainstem or to Kafka never match.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from mainstem.vocabulary import INTERNAL_PREFIX

ONE = "*"
MANY = "**"

_INTERNAL = ("__", INTERNAL_PREFIX.rstrip("."))
_LITERAL = re.compile(r"[A-Za-z0-9_-]+")
_NAMED = re.compile(r"\{(.+)\}")
_PART = r"[^.]+"


class BadPatternError(ValueError):
    """A text that is no pattern: what is wrong, what to do, and where in the text it is."""

    def __init__(self, problem: str, advice: str, at: int = 0) -> None:
        super().__init__(problem)
        self.problem = problem
        self.advice = advice
        self.at = at


@dataclass(frozen=True, slots=True)
class TopicPattern:
    """A checked pattern."""

    text: str
    places: Mapping[str, int]
    """Where the named parts stand in a topic's name: 1 is its first part, -1 its last."""
    regex: str
    """For the whole name of a topic; means the same to Java and to Python."""

    def matches(self, topic: str) -> bool:
        """True when the pattern stands for the topic."""
        return not is_pattern(topic) and re.fullmatch(self.regex, topic) is not None


def is_pattern(topic: str) -> bool:
    """True for a text that cannot be a topic's name, because it stands for many."""
    return "*" in topic or "{" in topic


@lru_cache(maxsize=1000)
def parse_pattern(text: str) -> TopicPattern:
    """The pattern in a text; raises BadPatternError."""
    parts = text.split(".")
    pieces: list[str] = []
    names: dict[str, tuple[int, int]] = {}
    at = 0
    for index, part in enumerate(parts):
        name = _name(part, at)
        if name is not None:
            if name.lower() in (known.lower() for known in names):
                problem = f'the name "{name}" stands twice'
                raise BadPatternError(problem, "Give each part a name of its own.", at)
            names[name] = (index, at)
            pieces.append(_PART)
        elif part == ONE:
            pieces.append(_PART)
        elif part == MANY:
            pieces.append(rf"{_PART}(?:\.{_PART})*")
        else:
            _check_literal(part, at)
            pieces.append(part)
        at += len(part) + 1
    if not is_pattern(text):
        raise BadPatternError(
            "it has no *, ** or {name}, so it stands for one topic",
            f"Leave FROM TOPICS out and write WITH (topic = '{text}').",
        )
    if parts[0].startswith(_INTERNAL):
        raise BadPatternError(
            "topics of Mainstem and Kafka themselves cannot be read as a stream",
            "Begin with another part.",
        )
    places = {name: _place(parts, index, place) for name, (index, place) in names.items()}
    hidden = "|".join(re.escape(start) for start in _INTERNAL)
    # Spark looks for the expression anywhere in a name
    return TopicPattern(text, places, f"^(?!{hidden})" + r"\.".join(pieces) + "$")


def _name(part: str, at: int) -> str | None:
    """The name between the braces of a part; None for a part without braces."""
    if "{" not in part and "}" not in part:
        return None
    match = _NAMED.fullmatch(part)
    if match is None or "{" in match[1] or "}" in match[1]:
        raise BadPatternError(
            f'"{part}" is not a named part',
            "Write {name} between dots, with nothing before or behind it.",
            at,
        )
    return match[1]


def _check_literal(part: str, at: int) -> None:
    if not part:
        advice = "Write something between the dots: a word, *, ** or {name}."
        raise BadPatternError("a part is empty", advice, at)
    if "*" in part:
        raise BadPatternError(
            f'"{part}" is not a wildcard',
            "Between two dots, write * for exactly one part or ** for one or more.",
            at,
        )
    if not _LITERAL.fullmatch(part):
        raise BadPatternError(
            f'no topic can have the part "{part}"',
            "Use letters, digits, _ and -, or one of *, ** and {name}.",
            at,
        )


def _place(parts: list[str], index: int, at: int) -> int:
    """Counted from the side on which every part before it is one part of the topic."""
    if MANY not in parts[:index]:
        return index + 1
    if MANY not in parts[index:]:
        return index - len(parts)
    raise BadPatternError(
        f"between two ** nothing tells where {parts[index]} is",
        "Name parts before the first ** or behind the last one.",
        at,
    )
