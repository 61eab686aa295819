"""Errors of a schema registry: our codes, and the numbers that Confluent's clients know them by."""

from __future__ import annotations

from mainstem.errors import MainstemError, catalogue, filled

NUMBERS = {
    "SUBJECT_UNKNOWN": 40401,
    "SCHEMA_VERSION_UNKNOWN": 40402,
    "SCHEMA_UNKNOWN": 40403,
    "SUBJECT_SOFT_DELETED": 40404,
    "SUBJECT_NOT_SOFT_DELETED": 40405,
    "SCHEMA_VERSION_SOFT_DELETED": 40406,
    "SCHEMA_VERSION_NOT_SOFT_DELETED": 40407,
    "SUBJECT_LEVEL_NOT_SET": 40408,
    "SUBJECT_MODE_NOT_SET": 40409,
    "SCHEMA_INCOMPATIBLE": 40901,
    "SCHEMA_MALFORMED": 42201,
    "SCHEMA_REFERENCE_UNKNOWN": 42201,
    "SCHEMA_REFERENCE_CIRCLE": 42201,
    "SCHEMA_VERSION_INVALID": 42202,
    "COMPATIBILITY_INVALID": 42203,
    "REGISTRY_MODE_INVALID": 42204,
    "REGISTRY_NOT_PERMITTED": 42205,
    "SCHEMA_REFERENCED": 42206,
    "SUBJECT_INVALID": 42208,
    "SCHEMA_TOO_LARGE": 42209,
    "RECORD_TOO_LARGE": 42209,
    "BAD_REQUEST": 422,
    "REGISTRY_ELSEWHERE": 404,
    "NO_SUCH_PATH": 404,
    "METHOD_NOT_ALLOWED": 405,
    "REGISTRY_BUSY": 50002,
}
_STORE_FAILED = 50001


def number_of(error: MainstemError) -> int:
    """Confluent's number; what is not about schemas is a failure of the store."""
    return NUMBERS.get(error.code, _STORE_FAILED)


def told(error: MainstemError) -> str:
    """The one text that the API has room for."""
    return f"{error.message}. {error.hint}"


def status_of(number: int) -> int:
    """The HTTP status that goes with a number: its first three digits."""
    return int(str(number)[:3])


def error_of(number: int, text: str) -> MainstemError | None:
    """The error that another of our gateways has told; None when it is none of ours."""
    for code in (code for code, known in NUMBERS.items() if known == number):
        entry = catalogue()[code]
        found = filled(f"{entry.message}. {entry.hint}", text)
        if found is not None:
            return MainstemError(code, **found)
    return None
