"""The demo that README promises: the whole stack, from nothing to a checked answer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).parents[2] / "examples" / "shop" / "demo.py"


def test_the_demo_checks_its_own_answer(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, str(DEMO), "--once"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
    assert "computed from the events" in ended.stdout
    assert "broker stopped" in ended.stderr
