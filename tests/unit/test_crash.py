"""Crash points: silent unless asked for, and then as sudden as `kill -9`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mainstem.crash import VARIABLE

PROGRAM = """
from mainstem.crash import crash_point
crash_point("here", "flow.1", 7)
print("alive")
"""


@pytest.mark.parametrize(
    ("wanted", "dies"),
    [
        (None, False),
        ("here:flow.1:7", True),
        ("here:*:7", True),
        ("here:flow.1:*", True),
        ("there:flow.1:7", False),
        ("here:flow.2:7", False),
        ("here:flow.1:8", False),
    ],
)
def test_dies_only_where_asked(wanted: str | None, dies: bool) -> None:
    environment = {key: value for key, value in os.environ.items() if key != VARIABLE}
    if wanted is not None:
        environment[VARIABLE] = wanted
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, check=False
    )
    assert done.returncode == (-signal.SIGKILL if dies else 0)
    assert (b"alive" in done.stdout) is not dies


def test_a_file_arms_the_point_once(tmp_path: Path) -> None:
    armed = tmp_path / "armed"
    armed.write_text("after_commit:*:*")
    program = (
        "from mainstem.crash import crash_point\n"
        "crash_point('after_init', 'f', 1)\n"
        "crash_point('after_commit', 'f', 1)\n"
    )
    environment = {**os.environ, "MAINSTEM_CRASH": f"@{armed}"}
    environment.pop("MAINSTEM_CRASH_PID", None)
    first = subprocess.run([sys.executable, "-c", program], env=environment, check=False)
    second = subprocess.run([sys.executable, "-c", program], env=environment, check=False)
    assert (first.returncode, second.returncode) == (-signal.SIGKILL, 0)
    assert not armed.exists()
