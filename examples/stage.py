"""A project on servers of its own: what the demo and all other examples run on."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from mainstem.client import Client
from mainstem.cli.pipeline import changed_flows, definition_files
from mainstem.config import load_project
from mainstem.local.run_file import RunInfo, running
from mainstem.local.stack import Stack

PATIENCE_SECONDS = 300.0
"""A busy machine may take long over a first plan."""
say = Console(stderr=True, highlight=False)


@contextmanager
def stack(folder: Path) -> Iterator[tuple[Client, RunInfo]]:
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
                yield client, run


def apply(client: Client, folder: Path) -> dict[str, int]:
    """Brings the catalog to what a project's files say; the flows that this starts."""
    files = definition_files(load_project(folder))
    plan = client.plan(files)
    say.print(plan["text"], markup=False, soft_wrap=True)
    client.apply(files, plan["digest"], plan["revision"])
    return changed_flows(plan["plan"])
