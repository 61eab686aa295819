"""What a tool is: a name, what it takes, and a function from that to a document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, ValidationError

from mainstem.client import Client
from mainstem.config import Project
from mainstem.errors import MainstemError
from mainstem.mcp.sizes import fitted
from mainstem.schemas.registry_client import RegistryClient


class Place(Protocol):
    """Where a tool works. Each part is looked for when it is asked for, and raises MainstemError
    when it is not there.
    """

    @property
    def client(self) -> Client:
        """A client of the gateway."""

    @property
    def registry(self) -> RegistryClient:
        """The schema registry."""

    @property
    def project(self) -> Project:
        """The project whose definitions are planned and applied."""


class Arguments(BaseModel):
    """What a tool takes; a name that it does not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class Tool:
    """`run` is called in a thread, by several callers at once; what it raises is the answer."""

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    run: Callable[[Place, Any], dict[str, Any]]
    changes: bool = False
    """True: offered only when changes are allowed."""
    destructive: bool = False
    """True: what it changes may be lost for good."""

    def call(self, place: Place, given: Mapping[str, Any]) -> dict[str, Any]:
        """The answer, cut to a size that can be read."""
        try:
            arguments = self.arguments.model_validate(dict(given))
        except ValidationError as error:
            problem = f"{self.name}: {_problems(error)}"
            raise MainstemError("INVALID_ARGUMENTS", problem=problem) from None
        return fitted(self.run(place, arguments))


def find(tools: Sequence[Tool], name: str, *, allow_changes: bool) -> Tool | None:
    """The tool of this name; CHANGES_NOT_ALLOWED when there is one that must not be used."""
    tool = next((tool for tool in tools if tool.name == name), None)
    if tool is not None and tool.changes and not allow_changes:
        raise MainstemError("CHANGES_NOT_ALLOWED", tool=name)
    return tool


def _problems(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(map(str, one['loc']))}: {one['msg']}" if one["loc"] else one["msg"]
        for one in error.errors(include_url=False, include_context=False, include_input=False)
    )
