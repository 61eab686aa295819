"""The demo: a live shop on the whole stack.

python examples/shop/demo.py           a terminal table that changes as events arrive
python examples/shop/demo.py --once    produce, check the served answer, exit 0 or 1
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table

from mainstem.cli.stack import psql_command
from mainstem.client import Client
from mainstem.errors import MainstemError

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))

from events import Answer, events  # noqa: E402

from play import send  # noqa: E402
from stage import apply, say, stack  # noqa: E402

ONCE_EVENTS = 24_000
PER_SECOND = 200
PATIENCE_SECONDS = 240.0


def main() -> int:
    """Runs the demo."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--once", action="store_true", help="check the answer and exit")
    once = options.parse_args().once
    began = time.monotonic()
    try:
        with stack(HERE) as stage:
            client, run = stage.client, stage.run
            apply(client, HERE)
            say.print(f"ready after {time.monotonic() - began:.0f} s")
            say.print(f"page: {run.gateway_url}/")
            say.print(f"psql: {psql_command(run)}", soft_wrap=True)
            if once:
                ok = check_once(client)
                say.print(f"{'right' if ok else 'WRONG'}, after {time.monotonic() - began:.0f} s")
                return 0 if ok else 1
            show_live(client)
    except KeyboardInterrupt:
        say.print("stopped; nothing is left running")
        return 0
    except MainstemError as error:
        say.print(error.render(), style="red", markup=False)
        return error.exit_code
    return 0


def query(client: Client, sql: str) -> list[list[Any]]:
    """Rows of a pull query."""
    rows: list[list[Any]] = client.sql(sql)["rows"]
    return rows


def check_once(client: Client) -> bool:
    """Produces a fixed number of events and compares the served tables with plain Python."""
    answer = Answer()
    source = events(seed=7, start=datetime.now(UTC))
    sent = 0
    while batch := list(islice(source, min(1000, ONCE_EVENTS - sent))):
        for event in batch:
            answer.add(event)
        send(client, batch)
        sent += len(batch)
    say.print(f"produced {sent} events")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        visits = {(p, _minute(m)): v for p, m, v in query(client, VISITS)}
        sales = {p: (o, Decimal(str(r)), Decimal(str(b))) for p, o, r, b in query(client, SALES)}
        big = query(client, "SELECT count(*) FROM big_orders")[0][0]
        right = (visits, sales, big) == (answer.page_visits, answer.sales, answer.big_orders)
        if right or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    out = Console(width=110)
    out.print(f"big_orders: {answer.big_orders} computed from the events, {big} in the log")
    out.print(_compared("page_visits", answer.page_visits, visits))
    out.print(_compared("sales_by_product", answer.sales, sales))
    return right


def show_live(client: Client) -> None:
    """Produces at an even rate and shows the tables until Ctrl-C."""
    stop = threading.Event()
    producing = threading.Thread(target=_produce, args=(client, stop), daemon=True)
    producing.start()
    try:
        with Live(console=Console(), auto_refresh=False) as live:
            before: dict[Any, Any] = {}
            while True:
                sales = query(client, SALES)
                visits = query(client, VISITS + " ORDER BY minute DESC, page LIMIT 12")
                live.update(Group(*_screens(sales, visits, before)), refresh=True)
                before = {tuple(r[:1]): r for r in sales} | {tuple(r[:2]): r for r in visits}
                time.sleep(0.5)
    finally:
        stop.set()
        producing.join(5)


VISITS = "SELECT page, minute, visits FROM page_visits"
SALES = "SELECT product, orders, revenue, largest FROM sales_by_product"


def _produce(client: Client, stop: threading.Event) -> None:
    source = events(seed=int(time.time()), start=datetime.now(UTC))
    while not stop.wait(0.25):
        try:
            send(client, list(islice(source, PER_SECOND // 4)))
        except MainstemError as error:
            say.print(error.render(), markup=False)


def _screens(
    sales: list[list[Any]], visits: list[list[Any]], before: dict[Any, Any]
) -> Iterator[Table]:
    for title, names, rows, keys in (
        ("sales_by_product", ("product", "orders", "revenue", "largest"), sorted(sales), 1),
        ("page_visits, newest first", ("page", "minute", "visits"), visits, 2),
    ):
        table = Table(*names, title=title, title_justify="left", min_width=70)
        for row in rows:
            changed = before.get(tuple(row[:keys])) != row
            table.add_row(*map(str, row), style="bold green" if changed else "")
        yield table


def _minute(value: str) -> str:
    return value[:16] + ":00Z"


def _compared(title: str, expected: dict[Any, Any], served: dict[Any, Any]) -> Table:
    table = Table("key", "computed from the events", "served", title=title, title_justify="left")
    for key in sorted({*expected, *served}, key=str):
        same = expected.get(key) == served.get(key)
        shown = [str(key), _plain(expected.get(key)), _plain(served.get(key))]
        table.add_row(*shown, style="" if same else "bold red")
    return table


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


if __name__ == "__main__":
    sys.exit(main())
