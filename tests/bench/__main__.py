"""The benchmark: `make bench`. Prints goals and numbers, each when it is known; asserts nothing.

`python tests/bench throughput filter tumbling` runs one part, and two of its queries.

Machines are shared and noisy, so the main figures are ratios within one run and events per
CPU-second; quote latencies together with the machine they were measured on.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import changing_tables
import connectors
import formats
import httpx2
import latency
import lookups
import produce
import small_flows
import stateful
import subscriptions
import throughput
from cpu import memory_bytes
from printed import Goals, out, print_rows
from turns import Result

from mainstem.client import Client
from mainstem.config import Project, load_project
from mainstem.local.jars import spark_jars
from mainstem.local.stack import Stack
from mainstem.log.connection import Connection
from mainstem.log.producer import Producer

QUERIES = {
    "throughput": tuple(throughput.QUERIES),
    "formats": tuple(formats.FORMATS),
    "tables": changing_tables.FIGURES,
    "connectors": connectors.FIGURES,
}
WITH_STACK = ("small", "latency", "lookups", "subscriptions", "produce", "registry", "memory")
Chosen = Mapping[str, list[str]]
"""The parts to run, each with its queries."""
PARTS = ("throughput", "formats", "stateful", "tables", "connectors", *WITH_STACK, "demo")


def main() -> None:
    """Runs the chosen parts."""
    options = argparse.ArgumentParser(description=__doc__)
    known = [*PARTS, *(query for part in QUERIES.values() for query in part)]
    options.add_argument(
        "names", nargs="*", choices=[*known, []], default=[], help="parts, or queries of parts"
    )
    chosen = _chosen(set(options.parse_args().names))
    out.print(
        f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}"
    )
    goals, failed = Goals(), []
    with tempfile.TemporaryDirectory(prefix="mainstem-bench-") as folder:
        for part, run in _RUNS.items():
            if not chosen.keys() & {part, *(WITH_STACK if part == "stack" else ())}:
                continue
            try:
                run(Path(folder) / part, chosen, goals)
            except Exception:  # what the other parts say is worth having
                out.print_exception()
                failed.append(part)
    goals.print()
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def _chosen(names: set[str]) -> Chosen:
    """Those that are named, or all."""
    queries = names.difference(PARTS)
    found = {query for part in names.intersection(QUERIES) for query in QUERIES[part]}
    alone = queries - found  # these name their part as well
    return {
        part: [query for query in QUERIES.get(part, ()) if not queries or query in queries]
        for part in PARTS
        if not names or part in names or alone.intersection(QUERIES.get(part, ()))
    }


def _throughput(folder: Path, chosen: Chosen, goals: Goals) -> None:
    def rows(jars: list[Path], connection: Connection) -> Iterator[list[str]]:
        for by_hand, checked, flow in throughput.run(
            connection, jars, folder, chosen["throughput"]
        ):
            _add_share(goals, flow, by_hand, 0.9)
            for result in (by_hand, checked, flow):
                goal = ">= 90 %" if result is flow else ""
                yield [*_rates(result), _share(result, by_hand), _share(result, checked), goal]

    with _broker(folder) as (jars, connection):
        print_rows(("query", *_RATES, "of by hand", "of checked", "goal"), rows(jars, connection))


def _formats(folder: Path, chosen: Chosen, goals: Goals) -> None:
    def rows(jars: list[Path], connection: Connection) -> Iterator[list[str]]:
        for by_hand, *flows in formats.run(connection, jars, folder, chosen["formats"]):
            for result in (by_hand, *flows):
                goal = ">= 85 %" if "three" in result.name else ""
                if goal:
                    _add_share(goals, result, by_hand, 0.85)
                yield [*_rates(result), _share(result, by_hand), goal]

    with _broker(folder) as (jars, connection):
        print_rows(("filter", *_RATES, "of by hand", "goal"), rows(jars, connection))


_RATES = ("events per CPU-second", "events per second")


def _rates(result: Result) -> tuple[str, ...]:
    return (result.name, f"{result.per_cpu_second:,.0f}", f"{result.per_second:,.0f}")


def _share(result: Result, base: Result) -> str:
    """The median of the rounds, and the least and the most of them."""
    shares = [share * 100 for share in result.shares(base)]
    return f"{statistics.median(shares):.0f} % ({min(shares):.0f}-{max(shares):.0f})"


def _add_share(goals: Goals, result: Result, base: Result, least: float) -> None:
    met = result.per_cpu_second >= least * base.per_cpu_second
    goals.add(result.name, f"{_share(result, base)} of by hand", f">= {least:.0%}", met=met)


def _stateful(folder: Path, _: Chosen, goals: Goals) -> None:
    def rows(jars: list[Path], connection: Connection) -> Iterator[list[str]]:
        for name, events, seconds, cpu in stateful.run(connection, jars, folder):
            rates, goal = ["too long"] * 2, ""
            if seconds is not None:
                rates = [f"{events / cpu:,.0f}", f"{events / seconds:,.0f}"]
            if name.startswith("mainstem"):
                goal = ">= 20,000"
                met = seconds is not None and events >= 20_000 * seconds
                goals.add(f"stateful Python, {name}", f"{rates[1]} events a second", goal, met=met)
            yield [f"{name}, {events:,} events", *rates, goal]

    title = "a running sum per key, 50,000 keys, on two cores"
    with _broker(folder) as (jars, connection):
        print_rows(("way", *_RATES, "goal"), rows(jars, connection), title)


def _connectors(folder: Path, chosen: Chosen, goals: Goals) -> None:
    targets = [figure for figure in chosen["connectors"] if figure != "capture"]

    def rows(bench: connectors.ConnectorBench) -> Iterator[list[str]]:
        for part in (
            bench.capture() if "capture" in chosen["connectors"] else (),
            bench.sinks(targets) if targets else (),
        ):
            for found in part:
                if found.goal:
                    goals.add(found.what, found.measured, found.goal, met=found.met)
                yield [
                    found.what,
                    found.measured,
                    found.per_cpu_second,
                    found.others,
                    found.goal,
                ]

    with connectors.bench(folder) as bench:
        headings = ("connector", "measured", "rows per CPU-second", "others, cores", "goal")
        print_rows(headings, rows(bench))


@contextmanager
def _broker(folder: Path) -> Iterator[tuple[list[Path], Connection]]:
    with Stack(_project(folder), parts={"broker"}) as stack:
        artifacts = spark_jars()
        yield [*artifacts.jars, artifacts.bare_fs], Connection(stack.endpoints.bootstrap_servers)


def _tables(folder: Path, chosen: Chosen, goals: Goals) -> None:
    out.print("over a table that changes 1,000 rows a second, on two cores")
    with Stack(_project(folder), parts={"broker", "postgres"}) as stack:
        artifacts = spark_jars()
        jars = [*artifacts.jars, artifacts.bare_fs]
        for found in changing_tables.run(stack.endpoints, jars, folder, chosen["tables"]):
            if found.goal:
                goals.add(found.name, found.number, found.goal, met=found.met)
            goal = f" (goal: {found.goal})" if found.goal else ""
            out.print(f"  {found.name}: {found.measured}{goal}")


def _stack(folder: Path, chosen: Chosen, goals: Goals) -> None:
    with Stack(_project(folder)) as stack, Client(stack.endpoints.gateway_url) as client:
        connection = Connection(stack.endpoints.bootstrap_servers)
        if "memory" in chosen:
            time.sleep(20)  # idle means idle: start-up work is over
            memory = memory_bytes(os.getpid())
            memory["all"] = whole = sum(memory.values())
            goals.add("idle stack", f"{whole / 1e6:,.0f} MB", "<= 2,500 MB", met=whole <= 2.5e9)
            rows = sorted(memory.items(), key=lambda item: item[1])
            title = "memory of the idle stack, proportional (goal: 2,500 MB)"
            shown = ([name, f"{size / 1e6:,.0f}"] for name, size in rows)
            print_rows(("process", "MB"), shown, title)
        if "lookups" in chosen:
            _lookups(client, connection, stack.endpoints.gateway_url, goals)
        if "produce" in chosen:
            _produce(client, stack.endpoints.gateway_url, goals)
        if "subscriptions" in chosen:
            _subscriptions(client, connection, stack.endpoints.gateway_url, goals)
        if "registry" in chosen:
            _registry(stack.endpoints.gateway_url)
        if "small" in chosen:
            _small(client, connection, goals)
        if "latency" in chosen:
            print_rows(
                ("flow", "n", "p50 ms", "p95 ms", "p99 ms", "max ms"),
                (
                    [f.name, *(f"{v:,.0f}" for v in (f.count, f.p50, f.p95, f.p99, f.longest))]
                    for f in latency.run(client, connection)
                ),
                f"latency at {latency.RATE} events/s",
            )


def _small(client: Client, connection: Connection, goals: Goals) -> None:
    found = small_flows.run(client, connection, os.getpid(), out.print)
    cores = sum(found.cores.values())
    name, fresh = f"{small_flows.FLOWS} small flows", f"p95 freshness {found.freshness:.1f} s"
    goals.add(name, f"{cores:.2f} cores", "< 1.5", met=cores < 1.5)
    goals.add(name, fresh, "< 5 s", met=found.freshness < 5)
    by_size = sorted([*found.cores.items(), ("all (goal: 1.5)", cores)], key=lambda item: item[1])
    shown = ([name, f"{used:.2f}"] for name, used in by_size if used >= 0.005)
    print_rows(("process", "cores"), shown, f"{small_flows.FLOWS} small flows over one stream")
    out.print(
        f"{small_flows.RATE} events/s, {found.batches:.1f} batches/s,"
        f" {cores / found.batches * 1000:.0f} ms CPU a batch;"
        f" {fresh} (goal: 5 s)"
    )


def _lookups(client: Client, connection: Connection, url: str, goals: Goals) -> None:
    client.sql("CREATE TABLE looked_up (k STRING PRIMARY KEY, n BIGINT, text STRING)")
    producer = Producer(connection)
    producer.send("looked_up", [lookups.record(i, i) for i in range(lookups.KEYS)])
    producer.close()
    deadline = time.monotonic() + 30
    while client.sql("SELECT count(*) FROM looked_up")["rows"][0][0] < lookups.KEYS:
        if time.monotonic() > deadline:
            raise TimeoutError("the table was not served")
        time.sleep(0.1)
    with lookups.updating(connection):
        found = [lookups.rows(url, clients) for clients in lookups.CLIENTS]
    most = found[-1]
    name = f"look-ups by key, {most.clients} clients"
    goals.add(name, f"{most.rate:,.0f} a second", ">= 3,000", met=most.rate >= 3_000)
    goals.add(name, f"p99 {most.p99:.0f} ms", "< 25 ms", met=most.p99 < 25)
    shown = (
        [f"{f.clients} clients", f"{f.rate:,.0f}", *(f"{t:.1f}" for t in (f.p50, f.p99, f.longest))]
        for f in found
    )
    title = f"look-ups by key over HTTP, {lookups.UPDATES:,} updates/s beside (goal: 3,000, 25 ms)"
    print_rows(("", "a second", "p50 ms", "p99 ms", "longest ms"), shown, title)


def _produce(client: Client, url: str, goals: Goals) -> None:
    client.sql(produce.CREATE)
    produce.batches(url)  # warm
    rate = produce.batches(url)
    goals.add("REST produce", f"{rate:,.0f} records a second", ">= 20,000", met=rate >= 20_000)
    out.print(
        f"records over HTTP, {produce.BATCH:,} a request: {rate:,.0f} a second"
        f" (goal: 20,000 a second); with a key: {produce.batches(url, once=True):,.0f};"
        f" as lines: {produce.lines(url):,.0f}"
    )


def _subscriptions(client: Client, connection: Connection, url: str, goals: Goals) -> None:
    found = subscriptions.run(client, connection, url)
    name = f"{subscriptions.SUBSCRIBERS} subscribers"
    goals.add(name, f"p99 {found.p99:,.0f} ms", "< 250 ms", met=found.p99 < 250)
    resume = f"median {found.resume:,.0f} ms"
    goals.add("a subscription resumes", resume, "< 500 ms", met=found.resume < 500)
    out.print(
        f"{name}, {subscriptions.RATE} changes/s, from the topic to the last of them:"
        f" p50 {found.p50:,.0f} ms, p99 {found.p99:,.0f} ms, longest {found.longest:,.0f} ms"
        f" of {found.changes:,} (goal: p99 under 250 ms)"
    )
    out.print(
        f"all of them begin in {found.connect_seconds:.1f} s; one resumes in {resume},"
        f" at most {found.resume_longest:,.0f} ms, all at once in {found.resume_all_seconds:.1f} s"
    )


def _registry(url: str) -> None:
    ids = []
    began = time.monotonic()
    for size in range(1, 101):
        schema = json.dumps({"type": "fixed", "name": "F", "size": size})
        path = f"{url}/registry/subjects/bench-{size}/versions"
        answer = httpx2.post(path, json={"schema": schema}, trust_env=False)
        ids.append(answer.raise_for_status().json()["id"])
    each = (time.monotonic() - began) / len(ids) * 1000
    found = lookups.schemas(url, ids)
    out.print(
        f"schemas by id over HTTP: {found.rate:,.0f} a second, p99 {found.p99:.1f} ms;"
        f" registering one takes {each:.0f} ms"
    )


def _demo(_: Path, __: Chosen, goals: Goals) -> None:
    demo = Path(__file__).parents[2] / "examples" / "shop" / "demo.py"
    began = time.monotonic()
    ended = subprocess.run([sys.executable, str(demo), "--once"], capture_output=True, check=False)
    took = time.monotonic() - began
    met = took <= 60 and not ended.returncode
    goals.add("demo --once, warm", f"{took:.0f} s", "<= 60 s", met=met)
    out.print(f"demo --once, warm: {took:.0f} s, exit {ended.returncode} (goal: 60 s)")


def _project(folder: Path) -> Project:
    folder.mkdir(parents=True)
    (folder / "mainstem.toml").write_text('name = "bench"\n')
    return load_project(folder)


_RUNS: Mapping[str, Callable[[Path, Chosen, Goals], None]] = {
    "demo": _demo,
    # before this process has a Spark of its own, whose memory would be counted as the stack's
    "stack": _stack,
    "throughput": _throughput,
    "formats": _formats,
    "tables": _tables,
    "connectors": _connectors,
    "stateful": _stateful,
}


if __name__ == "__main__":
    main()
