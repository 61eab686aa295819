"""A place beside a target, which is filled from the beginning and then takes the target's place.

What a rebuild of a sink asks of a connector. `written` are options as a definition has them, all
others have secrets filled in. Every step may be done twice: a crash can come behind any of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol, cast

from mainstem.connect.targets.target import Shape
from mainstem.errors import MainstemError

_BESIDE = {
    "files": "files_beside",
    "opensearch": "opensearch_beside",
    "postgres": "postgres_beside",
}
"""Connectors whose targets can be switched in one step, and the modules that do it."""

Options = Mapping[str, Any]


class Beside(Protocol):
    """What such a module offers."""

    def place(self, written: Mapping[str, str], name: str, generation: int) -> dict[str, str]:
        """The options that differ for the place beside; `name` is that of what is read."""
        ...

    def check(self, options: Options, shape: Shape, sink: str) -> None:
        """Raises what would keep the target from being replaced; changes nothing."""
        ...

    def prepare(self, options: Options, beside: Options, shape: Shape) -> None:
        """Makes the place beside, empty, like the target; leaves one that is there."""
        ...

    def switch(
        self, options: Options, beside: Options, shape: Shape, sink: str, generation: int
    ) -> None:
        """Readers of the target see all of the new one from one moment on; the old one goes.

        The place beside was prepared; when it is gone, or is the target, that has been done.
        """
        ...

    def discard(self, beside: Options, shape: Shape) -> None:
        """Removes the place beside, which nobody will need; harmless when it is not there."""
        ...


def beside_of(connector: str, sink: str) -> Beside:
    """What switches the targets of a connector; refuses those that cannot be."""
    if connector not in _BESIDE:
        raise not_possible(
            sink, f"a target of connector {connector} cannot be replaced by another in one step"
        )
    return cast(Beside, import_module(f"{__package__}.{_BESIDE[connector]}"))


def beside_options(
    connector: str, written: Mapping[str, str], name: str, generation: int
) -> dict[str, str]:
    """The options of the place beside; `name` is that of what is read."""
    return {**written, **beside_of(connector, name).place(written, name, generation)}


def not_possible(sink: str, reason: str) -> MainstemError:
    """REBUILD_NOT_POSSIBLE."""
    return MainstemError("REBUILD_NOT_POSSIBLE", name=sink, reason=reason)
