"""Requests that write records: of one stream, of several at once, and without an end."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from mainstem.catalog.entry import Entry
from mainstem.errors import MainstemError
from mainstem.gateway.changes import unknown
from mainstem.gateway.ndjson import Written
from mainstem.gateway.receipts import Asked, Receipt
from mainstem.gateway.records import outgoing
from mainstem.gateway.sql import check_writable
from mainstem.gateway.writer import last_offsets
from mainstem.log.producer import Outgoing
from mainstem.receipts import write_receipt

if TYPE_CHECKING:
    from mainstem.gateway.services import Services


def target(at: Services, name: str) -> Entry:
    """What a client may write to, by its name."""
    catalog = at.catalog()
    entry = catalog.get(name)
    if entry is None:
        raise unknown(catalog, name)
    check_writable(entry)
    return entry


def write(at: Services, entry: Entry, records: Sequence[Any], asked: Asked | None) -> Any:
    """Write the records of a request, all or none; the receipt."""
    topic = entry.definition.topic
    receipt = at.once.write(topic, outgoing(entry.definition, records, at.codec), asked)
    return receipt_of(entry, receipt)


def write_part(
    at: Services, entry: Entry, asked: Asked | None, number: int, first: int, lines: bytes
) -> Written:
    """Write some lines of a longer request, all or none."""
    topic, records = entry.definition.topic, []
    for index, line in enumerate(lines.rstrip(b"\n").split(b"\n")):
        try:
            records.append(json.loads(line, parse_float=Decimal))
        except (ValueError, RecursionError) as error:
            problem = f"line {first + index + 1} is not JSON: {error}{_before(first)}"
            raise MainstemError("BAD_REQUEST", problem=problem) from None
    part = None if asked is None else asked.part(number, lines)
    try:
        receipt = at.once.write(topic, outgoing(entry.definition, records, at.codec), part)
    except MainstemError as error:
        if error.code != "INVALID_RECORD" or not first:
            raise
        params = error.params
        problem = f"{params['problem']}{_before(first)}"
        counted = {**params, "index": first + int(params["index"]), "problem": problem}
        raise MainstemError("INVALID_RECORD", **counted) from None
    repeated = len(records) if receipt.repeated else 0
    return Written(first, len(records), repeated, last_offsets(receipt.places, topic))


def write_together(
    at: Services, streams: dict[str, Sequence[Any]], asked: Asked | None
) -> dict[str, Any]:
    """Write to several streams in one transaction; the receipt of each."""
    made: list[Outgoing] = []
    counts: list[tuple[str, Entry, int]] = []
    for name, records in streams.items():
        entry = target(at, name)
        topic = entry.definition.topic
        try:
            some = outgoing(entry.definition, records, at.codec)
        except MainstemError as error:
            if "path" in error.params:
                error.params["path"] = f"streams.{name}.{error.params['path']}"
            raise
        made += (replace(record, topic=topic) for record in some)
        counts.append((name, entry, len(some)))
    receipt = at.once.write("", made, asked)
    places = list(receipt.places)
    told: dict[str, Any] = {"written": len(places), "repeated": receipt.repeated, "streams": {}}
    for name, entry, count in counts:
        some_places, places = places[:count], places[count:]
        told["streams"][name] = receipt_of(entry, Receipt(some_places, receipt.repeated))
    return told


def whole_record(body: bytes, key: str | None) -> dict[str, Any]:
    """A record whose value is the body of a request, as it is."""
    record: dict[str, Any] = {"value_base64": base64.b64encode(body).decode()}
    return record if key is None else {**record, "key": key}


def receipt_of(entry: Entry, receipt: Receipt) -> dict[str, Any]:
    """What a client is told: how many, the last offset by partition, and where each one is."""
    topic, places = entry.definition.topic, receipt.places
    offsets = last_offsets(places, topic)
    return {
        "written": len(places),
        "topic": topic,
        "offsets": {str(p): offset for p, offset in sorted(offsets.items())},
        "records": [{"partition": place.partition, "offset": place.offset} for place in places],
        "repeated": receipt.repeated,
        "receipt": write_receipt({entry.name: offsets}),
    }


def _before(first: int) -> str:
    return f" (the {first} records before this part are written)" if first else ""
