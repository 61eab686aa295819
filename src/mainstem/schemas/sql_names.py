"""Names as SQL has them."""

from __future__ import annotations

import re

from mainstem.definitions.keywords import RESERVED

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def sql_name(name: str) -> str:
    """A name, in backticks where it needs them."""
    if _PLAIN.fullmatch(name) and name.upper() not in RESERVED:
        return name
    return "`" + name.replace("`", "``") + "`"


def sql_text(text: str) -> str:
    """A text as a literal."""
    return "'" + text.replace("'", "''") + "'"
