"""The status topic: the latest word of each flow, and of the engine itself, as JSON documents."""

from __future__ import annotations

import json
from typing import Any

from mainstem.log.compacted import StateLog
from mainstem.log.connection import Connection
from mainstem.vocabulary import STATUS_TOPIC


def status_log(connection: Connection) -> StateLog[dict[str, Any]]:
    """The status topic as a dict; not started yet."""
    return StateLog(connection, STATUS_TOPIC, decode=json.loads, encode=_encode)


def _encode(status: dict[str, Any]) -> bytes:
    return json.dumps(status).encode()
