"""The two places of a sink that is built anew: its target, and the one beside it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mainstem.catalog.entry import Entry
from mainstem.connect.catalogue import spec_of
from mainstem.connect.secrets import Secrets
from mainstem.connect.spec import Role
from mainstem.connect.targets.beside import beside_of, beside_options
from mainstem.connect.targets.target import Shape
from mainstem.definitions.model import Definition
from mainstem.errors import MainstemError


@dataclass(frozen=True, slots=True)
class Places:
    """Its methods wait for the target; what they raise has no secrets in it."""

    entry: Entry
    """That of the sink with its new generation, or of the flow that fills the place beside."""
    source: Definition
    secrets: Secrets

    @classmethod
    def of(cls, entry: Entry, source: Definition, project: Path) -> Places:
        """Those of an entry."""
        return cls(entry, source, Secrets(project, os.environ))

    def prepare(self) -> None:
        """Makes the place beside, if it is not there."""
        self._ask(lambda to, options, beside, shape: to.prepare(options, beside, shape))

    def switch(self) -> None:
        """Lets it take the target's place, unless it has."""
        name, generation = self.entry.name, self.entry.generation
        self._ask(lambda to, *places: to.switch(*places, name, generation))

    def discard(self) -> None:
        """Removes it."""
        self._ask(lambda to, options, beside, shape: to.discard(beside, shape))

    def _ask(self, question: Callable[..., None]) -> None:
        entry, target = self.entry, self.entry.definition.target
        assert target is not None
        module = beside_of(target.connector, entry.name)
        written = dict(target.options)
        place = beside_options(target.connector, written, self.source.name, entry.generation)
        spec = spec_of(Role.SINK, target.connector)
        options: dict[str, Any] = spec.resolve(written, self.secrets)
        shape = Shape.of(options, self.source, entry.definition.transforms)
        try:
            question(module, options, spec.resolve(place, self.secrets), shape)
        except MainstemError as error:
            params: dict[str, Any] = {
                k: self.secrets.mask(v) if isinstance(v, str) else v
                for k, v in error.params.items()
            }
            raise MainstemError(error.code, **params) from None
