"""The gateway as seen by a program: records in and out, queries, subscriptions, administration.

import mainstem

with mainstem.connect() as shop:
    written = shop.produce("orders", [{"id": 1, "amount": Decimal("12.30")}])
    shop.query("SELECT * FROM totals", wait_for=written.receipt).pandas()

transport    HTTP that waits or blocks: each call is written once, for both clients
calling      requests, errors and patience; `wire` has the JSON
admin, queries, records
             the calls, each beside its blocking form; `clients` puts them together
"""

from mainstem.client.admin import Plan
from mainstem.client.answer import Answer
from mainstem.client.calling import Event
from mainstem.client.clients import AsyncClient, Client
from mainstem.client.connecting import connect, connect_async
from mainstem.client.explained import EventBehind, ExplainedRow
from mainstem.client.records import Record, Written
from mainstem.client.wire import Parameters, RemoteError

__all__ = [
    "Answer",
    "AsyncClient",
    "Client",
    "Event",
    "EventBehind",
    "ExplainedRow",
    "Parameters",
    "Plan",
    "Record",
    "RemoteError",
    "Written",
    "connect",
    "connect_async",
]
