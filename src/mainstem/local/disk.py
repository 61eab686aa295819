"""Room on the disk: the stack does not start without some, and says so when it runs low."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from mainstem.errors import MainstemError

_VARIABLE = "MAINSTEM_MIN_FREE_MB"


def needed_megabytes() -> int:
    """Free space below which the stack does not start (MAINSTEM_MIN_FREE_MB)."""
    given = os.environ.get(_VARIABLE, "500")
    if not given.isdigit():
        raise MainstemError("CONFIG_INVALID", file=_VARIABLE, problem=f'"{given}" is no number')
    return int(given)


def free_megabytes(folder: Path) -> int:
    """Free space where the folder is."""
    return shutil.disk_usage(folder).free // 1_000_000


def check_disk(folder: Path) -> None:
    """Raise DISK_FULL when there is not enough room to start."""
    free, needed = free_megabytes(folder), needed_megabytes()
    if free < needed:
        raise MainstemError("DISK_FULL", free=free, folder=str(folder), needed=needed)
