"""A project on servers of its own: what the demo and all other examples run on."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
from rich.console import Console

from mainstem.cli.pipeline import changed_flows, definition_files
from mainstem.client import Client
from mainstem.config import load_project
from mainstem.errors import MainstemError
from mainstem.local.run_file import RunInfo, running
from mainstem.local.stack import Stack
from play import File, Posted, Step
from world import World

PATIENCE_SECONDS = 300.0
"""A busy machine may take long over a first plan."""
say = Console(stderr=True, highlight=False)


@dataclass(frozen=True)
class Stage:
    """A project that runs."""

    client: Client
    run: RunInfo
    folder: Path

    def outside(self, step: Step, world: World) -> None:
        """Lets a step happen that is neither an event nor a statement."""
        match step:
            case Posted():
                url = f"{self.run.gateway_url}/v1/hooks/{step.source}"
                httpx2.post(url, json=step.body, trust_env=False).raise_for_status()
            case File():
                file = self.folder / step.path
                file.parent.mkdir(parents=True, exist_ok=True)
                whole = file.with_name(f".{file.name}")  # it comes into the folder in one step
                whole.write_text(step.text)
                whole.rename(file)
            case _:
                world.do(step)


@contextmanager
def stack(folder: Path) -> Iterator[Stage]:
    """A fresh copy of a project with its servers running, nothing applied yet."""
    with tempfile.TemporaryDirectory(prefix=f"mainstem-{folder.name}-") as scratch:
        copy = Path(scratch) / folder.name
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(".mainstem", "__pycache__"))
        project = load_project(copy)
        say.print("starting broker, PostgreSQL, engine and gateway")
        with Stack(project, listener=lambda e: say.print(f"  {e.part} {e.kind} {e.detail}")):
            run = running(project)
            assert run is not None
            with Client(run.gateway_url, timeout=PATIENCE_SECONDS) as client:
                yield Stage(client, run, copy)


def apply(client: Client, *folders: Path) -> dict[str, int]:
    """Brings the catalog to what the files of projects say; the flows that this starts."""
    files = [file for folder in folders for file in definition_files(load_project(folder))]
    plan = client.plan(files)
    say.print(plan["text"], markup=False, soft_wrap=True)
    client.apply(files, plan["digest"], plan["revision"])
    return changed_flows(plan["plan"])


def wait_for_sources(client: Client, seconds: float) -> None:
    """Returns when every source listens, or captures."""
    deadline = time.monotonic() + seconds
    while waiting := [
        source for source in client.connectors()["connectors"] if source["state"] != "running"
    ]:
        if time.monotonic() > deadline:
            told = ", ".join(
                f"{one['name']} {one['state']} {one['error'] or ''}" for one in waiting
            )
            raise MainstemError("FLOWS_NOT_RUNNING", names=told, seconds=f"{seconds:g}")
        time.sleep(0.3)
