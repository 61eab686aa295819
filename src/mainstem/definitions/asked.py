"""A definition's query as the rules look at it: its tree, and errors at their place."""

from __future__ import annotations

from dataclasses import dataclass

from mainstem.definitions.dialect import Parsed
from mainstem.definitions.model import Query
from mainstem.definitions.places import place_in
from mainstem.definitions.query import reparse
from mainstem.errors import MainstemError


@dataclass(frozen=True, slots=True)
class Asked:
    """A query and its tree, whose places are offsets in the query's text."""

    query: Query
    parsed: Parsed

    @staticmethod
    def of(query: Query) -> Asked:
        """The query, parsed again."""
        return Asked(query, reparse(query))

    def refusal(
        self, offset: int, what: str, advice: str, where: str = "a definition"
    ) -> MainstemError:
        """NOT_SUPPORTED at a place of the query."""
        location = place_in(self.query, offset)
        return MainstemError(
            "NOT_SUPPORTED", location=location, what=what, where=where, advice=advice
        )
