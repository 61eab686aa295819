"""What the API description shows as answers about the quarantine."""

from __future__ import annotations

LISTED = {
    "id": 17,
    "object": "orders",
    "stage": "decode",
    "code": "RECORD_NOT_DECODED",
    "cause": 'a record does not fit "orders": field "id" is not a bigint',
    "at": "2026-11-15T09:00:00.125000+00:00",
    "origin": "orders/0/41",
    "state": "held",
    "timestamp": 1794733200000,
    "key": "k1",
    "value": '{"id": "seven"}',
    "size": 15,
}
COUNTED = {
    "object": "orders",
    "stage": "decode",
    "code": "RECORD_NOT_DECODED",
    "cause": 'a record does not fit "orders": field "id" is not a bigint',
    "held": 1,
    "replayed": 4,
    "discarded": 0,
}
REPLAYED = {
    "dry_run": False,
    "replayed": 1,
    "refused": 1,
    "skipped": 0,
    "records": [
        {
            "id": 17,
            "outcome": "replayed",
            "problem": None,
            "object": "orders",
            "origin": "orders/0/41",
            "changed": True,
            "key": "k1",
            "value": '{"id": 7}',
        },
        {
            "id": 18,
            "outcome": "refused",
            "problem": "not JSON: Expecting value: line 1 column 1 (char 0)",
            "object": "orders",
            "origin": "orders/0/42",
        },
    ],
    "next": None,
    "until": 18,
}
DISCARDED = {
    "dry_run": False,
    "discarded": 1,
    "refused": 0,
    "skipped": 0,
    "records": [
        {
            "id": 17,
            "outcome": "discarded",
            "problem": None,
            "object": "orders",
            "origin": "orders/0/41",
            "changed": False,
        }
    ],
    "next": None,
    "until": 18,
}
ONE = {
    **{name: LISTED[name] for name in ("id", "object", "stage", "code", "cause", "at", "origin")},
    "state": "replayed",
    "settled": {"at": "2026-11-15T10:00:00+00:00", "changed": True},
    "record": {
        "topic": "orders",
        "partition": 0,
        "offset": 41,
        "timestamp": 1794733200000,
        "key": "k1",
        "value": '{"id": "seven"}',
        "headers": [],
    },
}
