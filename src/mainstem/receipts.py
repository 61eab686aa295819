"""A receipt: which records somebody has written, as a short text that a query can wait for.

`orders:0=41,2=7` says: of the stream or topic `orders`, up to offset 41 of partition 0 and offset 7
of partition 2. Several are joined by semicolons.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote, unquote

_ONE = re.compile(r"(?P<name>[^:;,=\s]+):(?P<at>\d{1,9}=\d{1,18}(,\d{1,9}=\d{1,18})*)", re.ASCII)

Receipt = Mapping[str, Mapping[int, int]]
"""Stream or topic -> partition -> the last offset that was written."""


def write_receipt(receipt: Receipt) -> str:
    """The receipt as text that fits into a header."""
    return ";".join(
        f"{quote(name, safe='')}:" + ",".join(f"{p}={offset}" for p, offset in sorted(at.items()))
        for name, at in receipt.items()
        if at
    )


def read_receipt(text: str) -> dict[str, dict[int, int]]:
    """What a text says; ValueError when it is no receipt."""
    return merge_receipts(_read(part) for part in text.replace(" ", "").split(";") if part)


def merge_receipts(receipts: Iterable[Receipt]) -> dict[str, dict[int, int]]:
    """One receipt for all: of each partition the last offset."""
    merged: dict[str, dict[int, int]] = {}
    for receipt in receipts:
        for name, at in receipt.items():
            known = merged.setdefault(name, {})
            for partition, offset in at.items():
                known[partition] = max(offset, known.get(partition, 0))
    return merged


def _read(text: str) -> Receipt:
    found = _ONE.fullmatch(text)
    if found is None:
        raise ValueError(text)
    pairs = (pair.split("=") for pair in found["at"].split(","))
    return {unquote(found["name"]): {int(p): int(offset) for p, offset in pairs}}
