"""The benchmark: `make bench`. Prints goals and numbers of one run; asserts nothing.

Machines are shared and noisy, so the main figures are ratios within one run and events per
CPU-second; quote latencies together with the machine they were measured on.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx2
import latency
import lookups
import small_flows
from cpu import memory_bytes
from rich.console import Console
from rich.table import Table

from mainstem.client import Client
from mainstem.config import Project, load_project
from mainstem.local.jars import spark_jars
from mainstem.local.stack import Stack
from mainstem.log.connection import Connection
from mainstem.log.producer import Outgoing, Producer

PARTS = (
    "throughput", "formats", "stateful", "tables", "small", "latency", "lookups", "registry",
    "memory", "demo",
)  # fmt: skip
out = Console(width=120)


def main() -> None:
    """Runs the chosen parts."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("parts", nargs="*", default=PARTS, choices=[*PARTS, []])
    chosen = options.parse_args().parts
    out.print(
        f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}"
    )
    with tempfile.TemporaryDirectory(prefix="mainstem-bench-") as folder:
        if "throughput" in chosen:
            _throughput(Path(folder) / "throughput")
        if "formats" in chosen:
            _formats(Path(folder) / "formats")
        if "stateful" in chosen:
            _stateful(Path(folder) / "stateful")
        if "tables" in chosen:
            _tables(Path(folder) / "tables")
        if {"small", "latency", "lookups", "registry", "memory"} & set(chosen):
            _stack(Path(folder) / "stack", chosen)
    if "demo" in chosen:
        _demo()


def _throughput(folder: Path) -> None:
    import throughput

    project = _project(folder)
    with Stack(project, parts={"broker"}) as stack:
        artifacts = spark_jars()
        connection = Connection(stack.endpoints.bootstrap_servers)
        results = throughput.run(connection, [*artifacts.jars, artifacts.bare_fs], folder)
    table = Table(
        "query", "events per CPU-second", "events per second", "of by hand", "of checked", "goal"
    )
    by_name = {result.name: result for result in results}
    for result in results:
        query = result.name.rpartition(" by ")[0]
        bases = (by_name[f"{query} by hand"], by_name[f"{query} by hand, checked"])
        table.add_row(
            result.name,
            f"{result.per_cpu_second:,.0f}",
            f"{result.per_second:,.0f}",
            *(f"{result.per_cpu_second / base.per_cpu_second:.0%}" for base in bases),
            "" if result in bases else ">= 90 %",
        )
    out.print(table)


def _formats(folder: Path) -> None:
    import formats

    project = _project(folder)
    with Stack(project, parts={"broker"}) as stack:
        artifacts = spark_jars()
        connection = Connection(stack.endpoints.bootstrap_servers)
        results = formats.run(connection, [*artifacts.jars, artifacts.bare_fs], folder)
    table = Table("filter", "events per CPU-second", "events per second", "of by hand", "goal")
    base = results[0]
    for result in results:
        if "by hand" in result.name:
            base = result
        table.add_row(
            result.name,
            f"{result.per_cpu_second:,.0f}",
            f"{result.per_second:,.0f}",
            f"{result.per_cpu_second / base.per_cpu_second:.0%}",
            ">= 85 %" if "three" in result.name else "",
        )
    out.print(table)


def _stateful(folder: Path) -> None:
    import stateful

    project = _project(folder)
    with Stack(project, parts={"broker"}) as stack:
        artifacts = spark_jars()
        connection = Connection(stack.endpoints.bootstrap_servers)
        results = stateful.run(connection, [*artifacts.jars, artifacts.bare_fs], folder)
    table = Table(
        "way", "events", "events per second", "events per CPU-second", title="a running sum per key"
    )
    for name, events, seconds, cpu in results:
        rates = ("more than the time allowed",) * 2
        if seconds is not None:
            rates = (f"{events / seconds:,.0f}", f"{events / cpu:,.0f}")
        table.add_row(name, f"{events:,}", *rates)
    out.print(table, "goal: 20,000 events per second on two cores, 50,000 keys")


def _tables(folder: Path) -> None:
    import changing_tables

    project = _project(folder)
    out.print("over a table that changes 1,000 rows a second, on two cores")
    with Stack(project, parts={"broker", "postgres"}) as stack:
        artifacts = spark_jars()
        jars = [*artifacts.jars, artifacts.bare_fs]
        for found in changing_tables.run(stack.endpoints, jars, folder):
            goal = f" (goal: {found.goal})" if found.goal else ""
            out.print(f"  {found.name}: {found.measured}{goal}", highlight=False)


def _stack(folder: Path, chosen: list[str]) -> None:
    project = _project(folder)
    with Stack(project) as stack, Client(stack.endpoints.gateway_url) as client:
        connection = Connection(stack.endpoints.bootstrap_servers)
        if "memory" in chosen:
            time.sleep(20)  # idle means idle: start-up work is over
            memory = memory_bytes(os.getpid())
            table = Table(
                "process", "MB", title="memory of the idle stack, proportional (goal: 2,500 MB)"
            )
            for name, size in sorted(memory.items(), key=lambda item: -item[1]):
                table.add_row(name, f"{size / 1e6:,.0f}")
            table.add_row("all", f"{sum(memory.values()) / 1e6:,.0f}")
            out.print(table)
        if "lookups" in chosen:
            _lookups(client, connection, stack.endpoints.gateway_url)
        if "registry" in chosen:
            _registry(stack.endpoints.gateway_url)
        if "small" in chosen:
            _small(client, connection)
        if "latency" in chosen:
            table = Table(
                "flow",
                "n",
                "p50 ms",
                "p95 ms",
                "p99 ms",
                "max ms",
                title=f"latency at {latency.RATE} events/s",
            )
            for found in latency.run(client, connection):
                table.add_row(
                    found.name,
                    str(found.count),
                    *(f"{v:,.0f}" for v in (found.p50, found.p95, found.p99, found.longest)),
                )
            out.print(table)


def _small(client: Client, connection: Connection) -> None:
    found = small_flows.run(client, connection, os.getpid(), out.print)
    table = Table("process", "cores", title=f"{small_flows.FLOWS} small flows over one stream")
    for name, cores in sorted(found.cores.items(), key=lambda item: -item[1]):
        if cores >= 0.005:
            table.add_row(name, f"{cores:.2f}")
    cores = sum(found.cores.values())
    table.add_row("all (goal: 1.5)", f"{cores:.2f}")
    out.print(
        table,
        f"{small_flows.RATE} events/s, {found.batches:.1f} batches/s,"
        f" {cores / found.batches * 1000:.0f} ms CPU a batch;"
        f" p95 freshness {found.freshness:.1f} s (goal: 5 s)",
    )


def _lookups(client: Client, connection: Connection, url: str) -> None:
    client.sql("CREATE TABLE looked_up (k STRING PRIMARY KEY, n BIGINT, text STRING)")
    producer = Producer(connection)
    producer.send(
        "looked_up",
        [
            Outgoing(
                key=json.dumps({"k": f"k{i}"}).encode(),
                value=json.dumps({"k": f"k{i}", "n": i, "text": "x" * 50}).encode(),
            )
            for i in range(lookups.KEYS)
        ],
    )
    producer.close()
    deadline = time.monotonic() + 30
    while client.sql("SELECT count(*) FROM looked_up")["rows"][0][0] < lookups.KEYS:
        if time.monotonic() > deadline:
            raise TimeoutError("the table was not served")
        time.sleep(0.1)
    rate, slowest = lookups.rows(url)
    out.print(
        f"look-ups by key over HTTP: {rate:,.0f} a second, p99 {slowest:.1f} ms"
        " (goal: 2,000 a second)"
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
    rate, slowest = lookups.schemas(url, ids)
    out.print(
        f"schemas by id over HTTP: {rate:,.0f} a second, p99 {slowest:.1f} ms;"
        f" registering one takes {each:.0f} ms"
    )


def _demo() -> None:
    demo = Path(__file__).parents[2] / "examples" / "shop" / "demo.py"
    began = time.monotonic()
    ended = subprocess.run([sys.executable, str(demo), "--once"], capture_output=True, check=False)
    out.print(
        f"demo --once, warm: {time.monotonic() - began:.0f} s, exit {ended.returncode} (goal: 60 s)"
    )


def _project(folder: Path) -> Project:
    folder.mkdir(parents=True)
    (folder / "mainstem.toml").write_text('name = "bench"\n')
    return load_project(folder)


if __name__ == "__main__":
    main()
