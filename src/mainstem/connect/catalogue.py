"""All connectors that there are: the `SPEC` of every module of `connectors`."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType

from mainstem.connect import connectors
from mainstem.connect.spec import ConnectorSpec, Role
from mainstem.errors import MainstemError, did_you_mean


@cache
def specs() -> Mapping[tuple[Role, str], ConnectorSpec]:
    """Every description by role and name, sources before sinks, then by name."""
    found = (
        import_module(f"{connectors.__name__}.{module.name}").SPEC
        for module in pkgutil.iter_modules(connectors.__path__)
    )
    ordered = sorted(found, key=lambda spec: (spec.role is Role.SINK, spec.name))
    return MappingProxyType({(spec.role, spec.name): spec for spec in ordered})


def spec_of(role: Role, name: str) -> ConnectorSpec:
    """The description of one connector; UNKNOWN_CONNECTOR when there is none."""
    found = specs().get((role, name))
    if found is None:
        known = [name for other, name in specs() if other is role]
        raise unknown_connector(name, known, f"{role} ")
    return found


def named(name: str) -> list[ConnectorSpec]:
    """The descriptions of that name, of which there may be a source's and a sink's."""
    found = [spec for (_, known), spec in specs().items() if known == name]
    if not found:
        raise unknown_connector(name, [known for _, known in specs()])
    return found


def unknown_connector(name: str, known: list[str], role: str = "") -> MainstemError:
    """UNKNOWN_CONNECTOR with the nearest known name."""
    return MainstemError(
        "UNKNOWN_CONNECTOR",
        option="connector",
        role=role,
        name=name,
        known=", ".join(dict.fromkeys(known)),
        suggestion=did_you_mean(name, known),
    )
