"""Reads the text of a schema within bounds, so that no text can exhaust memory or the stack."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Any, NoReturn

from mainstem.errors import MainstemError
from mainstem.schemas.model import SchemaType

MAX_BYTES = 512 * 1024
"""Of one schema; it travels in one record, beside its references and its subject's name."""
MAX_DEPTH = 192
"""Braces and brackets inside one another; what reads a schema recurses as deep as it is nested."""

# a string (also one that is never closed) or a bracket; possessive, so that it never goes back
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[{]|[\]}]', re.DOTALL)


def check_size(text: str) -> None:
    """Refuses a text that is too large, or no text at all."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        _refuse("a character", f"half a surrogate pair at offset {error.start}")
    if size > MAX_BYTES:
        raise MainstemError(
            "SCHEMA_TOO_LARGE", problem=f"it has {size} bytes of at most {MAX_BYTES}"
        )


def check_depth(text: str) -> None:
    """Refuses a text whose brackets are nested too deeply."""
    depth = 0
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "[" | "{":
                depth += 1
                if depth > MAX_DEPTH:
                    raise too_deep(MAX_DEPTH)
            case "]" | "}":
                depth -= 1


def read_json(text: str, type: SchemaType) -> Any:
    """A schema's text as JSON; SCHEMA_MALFORMED names line and column."""
    check_size(text)
    check_depth(text)
    try:
        document = json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float
        )
        # an escape can stand for what no text can hold
        dump(document).encode()
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise malformed(type, where, error.msg[:1].lower() + error.msg[1:]) from None
    except UnicodeEncodeError:
        raise malformed(type, "an escape", "half a surrogate pair") from None
    except ValueError as error:
        raise malformed(type, "a value", str(error)) from None
    return document


def dump(document: Any, *, sort: bool = False) -> str:
    """JSON without spaces, as registries store it."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"), sort_keys=sort)


def malformed(type: SchemaType, where: str, problem: str) -> MainstemError:
    """The error of a schema that breaks the rules of its type."""
    return MainstemError("SCHEMA_MALFORMED", type=type.value, where=where, problem=problem)


def too_deep(limit: int) -> MainstemError:
    """The error of a schema that is nested more deeply than `limit`."""
    return MainstemError("SCHEMA_TOO_LARGE", problem=f"it is nested more than {limit} levels deep")


def pointer(*parts: str | int) -> str:
    """A JSON pointer; the whole document is `/`."""
    return "".join(f"/{str(p).replace('~', '~0').replace('/', '~1')}" for p in parts) or "/"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        [(twice, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f'the key "{twice}" stands there twice')
    return found


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"the number {digits[:40]} is out of range")
    return number


def _refuse(where: str, problem: str) -> NoReturn:
    raise MainstemError("SCHEMA_MALFORMED", type="text of a", where=where, problem=problem)
