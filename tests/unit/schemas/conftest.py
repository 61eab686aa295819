"""Where the schemas of these tests find what they refer to."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings

from mainstem.errors import MainstemError
from mainstem.schemas.model import Reference, Resolve, Schema

# a busy machine is no fault of an example
settings.register_profile("any pace", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any pace")


def resolver(known: dict[tuple[str, int], Schema]) -> Resolve:
    def resolve(reference: Reference) -> Schema:
        found = known.get((reference.subject, reference.version))
        if found is None:
            raise MainstemError(
                "SCHEMA_REFERENCE_UNKNOWN", name=reference.name, problem="no such subject"
            )
        return found

    return resolve


@pytest.fixture(scope="session")
def resolving() -> Callable[[dict[tuple[str, int], Schema]], Resolve]:
    """Makes what finds schemas by subject and version."""
    return resolver


@pytest.fixture(scope="session")
def no_references() -> Resolve:
    """Finds nothing."""
    return resolver({})
