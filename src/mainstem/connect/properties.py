"""Java's property files: how Kafka Connect is given its settings and its secrets."""

from __future__ import annotations

from collections.abc import Mapping

_SPECIAL = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}


def properties_text(entries: Mapping[str, object]) -> str:
    """The text of a file with these entries; keys are plain words."""
    return "".join(f"{key}={_escaped(str(value))}\n" for key, value in entries.items())


def _escaped(value: str) -> str:
    # a space in front would be taken for one behind the equals sign
    lead = "\\" if value.startswith(" ") else ""
    return lead + "".join(_SPECIAL.get(c) or _plain(c) for c in value)


def _plain(character: str) -> str:
    if " " <= character <= "~":
        return character
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
