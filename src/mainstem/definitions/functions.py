"""Which of Spark's functions a query may call (`functions.toml`), and their reference page."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from mainstem.errors import did_you_mean


@dataclass(frozen=True, slots=True)
class Functions:
    """The lists, by lower-case name."""

    allowed: dict[str, tuple[str, ...]]
    """Title of a group -> its names."""
    random: frozenset[str]
    """Allowed in single queries only: a replay would give other rows."""
    refused: dict[str, str]
    """Name -> why it is refused."""
    random_reason: str
    names: frozenset[str]
    """All names that a definition may call."""
    aggregates: frozenset[str]
    generators: frozenset[str]
    """Functions that make several rows of one; they may stand where a relation stands."""


@cache
def functions() -> Functions:
    """The lists, read once."""
    text = files("mainstem.definitions").joinpath("functions.toml").read_text("utf-8")
    data = tomllib.loads(text)
    allowed = {title: tuple(group["names"]) for title, group in data["allowed"].items()}
    return Functions(
        allowed=allowed,
        random=frozenset(data["random"]["names"]),
        refused={
            name: group["reason"] for group in data["refused"].values() for name in group["names"]
        },
        random_reason=data["random"]["reason"],
        names=frozenset(name for group in allowed.values() for name in group),
        aggregates=frozenset(allowed["Aggregates"]),
        generators=frozenset(allowed["Rows from arrays and maps"])
        | {"json_tuple", "variant_explode", "variant_explode_outer"},
    )


def why_not(name: str, *, definition: bool) -> str | None:
    """None when the function may be called; else words for the end of the hint."""
    known = functions()
    folded = name.lower()
    if not name.isascii():
        return did_you_mean(name, known.names)
    if folded in known.names or (folded in known.random and not definition):
        return None
    if folded in known.random:
        return f" This one is left out of definitions because {known.random_reason}."
    if folded in known.refused:
        return f" This one is left out because {known.refused[folded]}."
    return did_you_mean(name, known.names)


def reference() -> str:
    """The text of docs/functions.md."""
    known = functions()
    lines = [
        "# Functions",
        "",
        "Queries call Spark SQL's built-in functions. This page is made from the list that the",
        "parser checks (`src/mainstem/definitions/functions.toml`); a function that is not here is",
        "refused with `FUNCTION_NOT_ALLOWED`. Spark's own reference says what each of them does;",
        "`count_window` is Mainstem's own: see docs/streams-and-windows.md.",
    ]
    for title, names in sorted(known.allowed.items()):
        lines += ["", f"## {title}", "", ", ".join(f"`{name}`" for name in sorted(names))]
    lines += [
        "",
        "## In single queries only",
        "",
        f"Not in definitions: {known.random_reason.replace('it gives', 'they give')}.",
        "",
        ", ".join(f"`{name}`" for name in sorted(known.random)),
        "",
        "## Never",
        "",
        "| function | why |",
        "|---|---|",
        *(f"| `{name}` | {reason} |" for name, reason in sorted(known.refused.items())),
    ]
    return "\n".join(lines) + "\n"
