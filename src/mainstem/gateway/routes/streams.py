"""Records into a stream or a declared table."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.requests import Request

from mainstem.gateway.changes import unknown
from mainstem.gateway.records import outgoing, read_body
from mainstem.gateway.services import Services, services
from mainstem.gateway.sql import check_writable
from mainstem.receipts import write_receipt

router = APIRouter(tags=["records"])

_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["records"],
                    "properties": {
                        "records": {
                            "type": "array",
                            "minItems": 1,
                            "items": {
                                "type": "object",
                                "properties": {
                                    "value": {"type": ["object", "null"]},
                                    "key": {},
                                    "timestamp": {"type": ["integer", "null"]},
                                },
                            },
                        }
                    },
                }
            }
        },
    }
}


@router.post("/v1/streams/{name}/records", openapi_extra=_BODY)
async def write(
    at: Annotated[Services, Depends(services)], name: str, request: Request
) -> dict[str, Any]:
    """Write records, all or none; each is checked against the columns before a byte is sent.

    Without a `key` it comes from the key columns. In a table, `value: null` deletes the row of the
    key. With its `receipt` as `wait_for`, a query answers when its tables have taken them in.
    """
    catalog = at.catalog()
    entry = catalog.get(name)
    if entry is None:
        raise unknown(catalog, name)
    check_writable(entry)
    body = await request.body()

    def work() -> dict[str, Any]:
        records = outgoing(entry.definition, read_body(body), at.codec)
        offsets = at.writer.write(entry.definition.topic, records)
        return {
            "written": len(records),
            "offsets": {str(p): offset for p, offset in sorted(offsets.items())},
            "receipt": write_receipt({entry.name: offsets}),
        }

    return await asyncio.to_thread(work)
