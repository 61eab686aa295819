"""A folder that is filled beside another, and changes places with it in one step."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mainstem.connect.targets.beside import not_possible
from mainstem.connect.targets.files import NOTES, to_disk, told
from mainstem.connect.targets.target import Shape

_HERE = -100
"""AT_FDCWD: paths are as they are written."""
_EXCHANGE = 2
"""RENAME_EXCHANGE."""


def place(written: Mapping[str, str], name: str, generation: int) -> dict[str, str]:
    """A folder with the same parent."""
    return {"folder": f"{written['folder'].rstrip('/')}.mainstem-{generation}"}


def check(options: Mapping[str, Any], shape: Shape, sink: str) -> None:
    """Refuses a folder that others write to, and a system that cannot exchange two folders."""
    folder = Path(options["folder"])
    with told(folder):
        other = next((path for path in _files(folder) if not _is_ours(path, sink)), None)
        if other is not None:
            raise not_possible(sink, f"{other} is not of this sink, and would not be kept")
        if folder.is_symlink():
            raise not_possible(sink, f"{folder} is a link")
        if not folder.exists():
            return
        with tempfile.TemporaryDirectory(prefix=".mainstem-", dir=folder.parent) as there:
            one, two = Path(there, "one"), Path(there, "two")
            one.mkdir()
            two.mkdir()
            if not _exchange(one, two):
                raise not_possible(
                    sink, f"the system cannot exchange {folder} for another in one step"
                )


def prepare(options: Mapping[str, Any], beside: Mapping[str, Any], shape: Shape) -> None:
    """Makes the folder."""
    folder = Path(beside["folder"])
    with told(folder):
        (folder / NOTES).mkdir(parents=True, exist_ok=True)


def switch(
    options: Mapping[str, Any],
    beside: Mapping[str, Any],
    shape: Shape,
    sink: str,
    generation: int,
) -> None:
    """Exchanges the folders; which one is the new is noted in it.

    1. The note. Crash: it is written again.
    2. The exchange. Crash: the note is found in the target's place.
    3. The files of the old one go, but for what others have put there.
    """
    target, new = Path(options["folder"]), Path(beside["folder"])
    note = f"{sink}-built-{generation}"
    with told(target):
        if not (target / NOTES / note).exists():
            (new / NOTES / note).touch()
            to_disk(new / NOTES)
            if not target.exists():
                new.rename(target)
            elif not _exchange(target, new):
                raise not_possible(sink, f"{target} could not be exchanged for {new}")
            to_disk(target.parent)
        _clear(new, sink)


def discard(beside: Mapping[str, Any], shape: Shape) -> None:
    """Removes the folder."""
    folder = Path(beside["folder"])
    with told(folder):
        if folder.exists():
            shutil.rmtree(folder)


def _clear(folder: Path, sink: str) -> None:
    """Removes what a sink has written to a folder, and the folder if nothing is left in it."""
    for path in list(_files(folder)):
        if _is_ours(path, sink):
            path.unlink(missing_ok=True)
    if folder.exists() and not any(_files(folder)):
        shutil.rmtree(folder)


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if not path.is_dir() or path.is_symlink())


def _is_ours(path: Path, sink: str) -> bool:
    return path.name.lstrip(".").startswith(f"{sink}-")


def _exchange(one: Path, two: Path) -> bool:
    """Lets two folders change places; False: the system cannot."""
    if sys.platform != "linux":
        return False
    rename = ctypes.CDLL(None, use_errno=True).renameat2
    if rename(_HERE, os.fsencode(one), _HERE, os.fsencode(two), _EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        return False
    raise OSError(code, os.strerror(code), str(one))
