"""Options that the sources which listen share, and what is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mainstem.connect.capture import Captured, Events
from mainstem.connect.spec import Field, FieldKind
from mainstem.definitions.model import Format
from mainstem.definitions.options import milliseconds
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column

_FOREVER = "forever"
OF_STREAM = (
    Field(
        "stream",
        FieldKind.TEXT,
        "What the stream is called; without it the source's name and `_events`.",
        "events_of_routers",
        place=True,
    ),
    Field(
        "watermark",
        FieldKind.TEXT,
        "How late a record may be, for windows that close.",
        "10 minutes",
    ),
    Field(
        "partitions",
        FieldKind.INTEGER,
        "Partitions of the stream's topic; without it as in mainstem.toml.",
        "4",
        least=1,
        most=1000,
    ),
    Field(
        "retention",
        FieldKind.TEXT,
        "How long records are kept, or `forever`; without it as the broker does.",
        "30 days",
    ),
)
"""Options about the stream that such a source brings."""


def stream_of(
    source: str,
    options: Mapping[str, Any],
    columns: tuple[Column, ...],
    *,
    key: tuple[str, ...] = (),
    event_time: str | None = None,
    format_: Format = Format.JSON,
) -> Captured:
    """The stream of a source, by its options."""
    name = options["stream"] or f"{source}_events"
    events = Events(
        event_time,
        _interval(options, "watermark", "'10 minutes'"),
        options["partitions"],
        _interval(options, "retention", f"'30 days', or '{_FOREVER}'", _FOREVER),
        format_,
    )
    return Captured(name, name, columns, key, events=events)


def _interval(
    options: Mapping[str, Any], option: str, example: str, otherwise: str | None = None
) -> str | None:
    """An option that is an interval, or a word; None when it is not there."""
    if options[option] is None:
        return None
    text = str(options[option]).strip().lower()
    if text != otherwise and not milliseconds(text):
        raise invalid(option, text, "it is not an interval", example)
    return text


def address_of(text: str) -> tuple[str, int]:
    """Host and port of `127.0.0.1:5514` or `[::1]:5514`; INVALID_OPTION for anything else."""
    host, colon, port = text.strip().rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not bare or ("[" in bare) or (":" in bare) != (bare != host):
        raise invalid("listen", text, "it is not an address and a port", "'127.0.0.1:5514'")
    if not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65_536:
        raise invalid("listen", text, "its port is not one of 1 to 65535", "'127.0.0.1:5514'")
    return bare, int(port)


def invalid(option: str, value: str, problem: str, example: str) -> MainstemError:
    """INVALID_OPTION about one of these options."""
    return MainstemError(
        "INVALID_OPTION",
        option=option,
        value=value,
        problem=problem,
        advice=f"Write for example {option} = {example}.",
    )
