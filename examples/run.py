"""Runs an example: servers, definitions, events, and its own check of the answer.

python examples/run.py              the examples there are
python examples/run.py searches     exit code 0 when the answer is right, 1 when it is wrong
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.table import Table

from compare import Compared, asking, troubles, wait_for
from mainstem.cli.pipeline import wait_for_flows
from mainstem.client import Client
from mainstem.errors import MainstemError
from play import EXAMPLES, Step, case, names, play
from stage import Stage, apply, say, stack, wait_for_sources
from world import NotHereError, World, world

SEED = 7
START_SECONDS = 240.0
SHOWN_ROWS = 12
PATIENCE_SECONDS = 180.0


def main() -> int:
    """Runs the example that the command line names."""
    options = argparse.ArgumentParser(description="Run one of Mainstem's examples.")
    options.add_argument("name", nargs="?", choices=names(), metavar="name")
    options.add_argument("--seed", type=int, default=SEED, help="for other events (%(default)s)")
    chosen = options.parse_args()
    if chosen.name is None:
        list_examples()
        return 0
    try:
        with world([chosen.name]) as around, stack(EXAMPLES / chosen.name) as stage:
            say.print(f"page: {stage.run.gateway_url}/")
            return 0 if check(stage, around, chosen.name, seed=chosen.seed) else 1
    except NotHereError as missing:
        say.print(f"{chosen.name} cannot run here: {missing}", style="red", markup=False)
        return 1
    except KeyboardInterrupt:
        say.print("stopped; nothing is left running")
        return 130
    except MainstemError as error:
        say.print(error.render(), style="red", markup=False)
        return error.exit_code


def list_examples() -> None:
    """What there is to run."""
    for name in names():
        about = (case(name).__doc__ or "").splitlines()[0]
        print(f"{name:<12} {about}")
    print("\nmake example NAME=searches, or python examples/run.py searches")


def check(
    stage: Stage,
    around: World,
    *names: str,
    seed: int = SEED,
    patience: float = PATIENCE_SECONDS,
) -> bool:
    """Applies examples, plays them, and compares what comes of it with their own answers."""
    client = stage.client
    began = time.monotonic()
    flows = apply(client, *(EXAMPLES / name for name in names))
    wait_for_flows(client, flows, START_SECONDS)
    wait_for_sources(client, START_SECONDS)
    say.print(f"all flows run, after {time.monotonic() - began:.0f} s")
    stories = {name: case(name).events(seed) for name in names}
    for steps in stories.values():
        play(client, steps, lambda step: stage.outside(step, around))
        say.print(f"played {len(steps)} steps")
    right = [
        has_right_answer(client, around, name, stories[name], flows, patience) for name in names
    ]
    verdict = "right" if all(right) else "WRONG"
    say.print(f"{', '.join(names)}: {verdict}, after {time.monotonic() - began:.0f} s")
    return all(right)


def has_right_answer(
    client: Client,
    around: World,
    name: str,
    steps: Sequence[Step],
    flows: Iterable[str],
    patience: float,
) -> bool:
    """Waits for an example's answer, and shows it beside what there is."""
    example = case(name)
    ask = asking(client, around)
    compared = wait_for(client, ask, example.answer(steps), flows, patience)
    right = all(c.equal for c in compared)
    out = Console(width=110)
    for one in compared:
        counts = f"{one.expected} rows computed from the events, {one.found} in Mainstem"
        out.print(f"\n{one.name} ({', '.join(one.columns)}): {counts}", markup=False)
        out.print(side_by_side(one))
    for trouble in troubles(client, flows):
        out.print(trouble, style="red", markup=False)
    if right and hasattr(example, "remark"):
        out.print(example.remark(lambda sql: client.sql(sql)["rows"]), markup=False)
    return right


def side_by_side(one: Compared) -> Table:
    """The first rows of a comparison; what differs comes first."""
    table = Table("computed from the events", "in Mainstem")
    for expected, found in one.pairs[:SHOWN_ROWS]:
        differs = expected is None or found is None
        table.add_row(_plain(expected), _plain(found), style="bold red" if differs else "")
    if len(one.pairs) > SHOWN_ROWS:
        table.add_row("...", "...")
    return table


def _plain(row: tuple[Any, ...] | None) -> str:
    return "" if row is None else ", ".join(map(_short, row))


def _short(value: Any) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.exit(main())
