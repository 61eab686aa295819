"""Where the classes of Spark and of the broker are kept, once read and checked, for JVMs to come.

A JVM that runs Spark loads some ten thousand classes out of 250 jars, the broker half as many. From
an archive of them (Java's class data sharing) that takes half the time: both are up, and back after
a crash, some seconds sooner. `mainstem.engine.class_archive` makes the archives, in the background
of the first stack that runs for a while. Java checks them against the jars and does without one
that does not fit.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

from mainstem.local.jars import SparkJars, cache_folder
from mainstem.local.java import Java
from mainstem.local.process import Child, Command

_DELAY_SECONDS = 60.0
"""A stack that lives shorter is not burdened with it."""


def class_archive(java: Java, artifacts: SparkJars) -> Path:
    """The archive for this Java, this Spark and these jars, whether it has been made or not."""
    return _archive(java, version("pyspark"), (*artifacts.jars, artifacts.bare_fs))


def broker_archive(java: Java, jars: Sequence[Path]) -> Path:
    """The same for the broker."""
    return _archive(java, "broker", jars)


def _archive(java: Java, what: str, jars: Iterable[Path]) -> Path:
    names = sorted(jar.name for jar in jars)
    parts = (str(java.home), str(java.version), what, *names)
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return cache_folder().parent / "classes" / f"{digest}.jsa"


def to_be_made(archive: Path) -> bool:
    """True when it is missing and making it has not failed before."""
    return not archive.exists() and not failed_mark(archive).exists()


def failed_mark(archive: Path) -> Path:
    """The file that says that it could not be made: a failure costs half a minute each time."""
    return archive.with_suffix(".failed")


def make_once(archive: Path, write: Callable[[Path, Path], bool]) -> bool:
    """Make the archive unless it is there or somebody is at it; False when that failed.

    `write` gets the file to write and a folder for whatever else it needs. Killed in the middle it
    leaves a part that nobody reads. Java trusts an archive's length, so the part gets its name when
    all of it is on the disk.
    """
    archive.parent.mkdir(parents=True, exist_ok=True)
    with archive.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        if not to_be_made(archive):
            return True
        part = archive.with_suffix(".part")
        part.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory(prefix="mainstem-classes-") as folder:
            written = write(part, Path(folder))
        if not written:
            failed_mark(archive).touch()
            return False
        with part.open("rb") as file:
            os.fsync(file)
        part.replace(archive)
    return True


class Archiving(threading.Thread):
    """Makes the archives while a stack runs, until that stops."""

    def __init__(self, folder: Path, log: Path, keep: int, stopping: threading.Event) -> None:
        super().__init__(name="class-archive", daemon=True)
        argv = [sys.executable, "-P", "-m", "mainstem.engine.class_archive"]
        # half an archive is of no use, so there is nothing to be done in order
        self._command = Command("class archive", argv, log, folder, stop="KILL")
        self._keep = keep
        self._stopping = stopping

    def run(self) -> None:
        """Waits, makes, ends."""
        if self._stopping.wait(_DELAY_SECONDS):
            return
        child = Child.start(self._command, keep=[self._keep])
        while child.alive and not self._stopping.wait(0.5):
            pass
        child.stop()
