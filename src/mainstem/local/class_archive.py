"""Where Spark's classes are kept, once they have been read and checked, for the JVMs to come.

A JVM that runs Spark loads some ten thousand classes out of 250 jars. From an archive of them
(Java's class data sharing) that takes half the time: the engine is up, and back after a crash, some
seconds sooner. `mainstem.engine.class_archive` makes the archive, in the background of the first
stack that runs for a while. Java checks it against the jars and does without it when it does not
fit.
"""

from __future__ import annotations

import hashlib
import sys
import threading
from importlib.metadata import version
from pathlib import Path

from mainstem.local.jars import SparkJars, cache_folder
from mainstem.local.java import Java
from mainstem.local.process import Child, Command

_DELAY_SECONDS = 60.0
"""A stack that lives shorter is not burdened with it."""


def class_archive(java: Java, artifacts: SparkJars) -> Path:
    """The archive for this Java, this Spark and these jars, whether it has been made or not."""
    names = sorted(jar.name for jar in (*artifacts.jars, artifacts.bare_fs))
    parts = (str(java.home), str(java.version), version("pyspark"), *names)
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return cache_folder().parent / "classes" / f"{digest}.jsa"


def to_be_made(archive: Path) -> bool:
    """True when it is missing and making it has not failed before."""
    return not archive.exists() and not failed_mark(archive).exists()


def failed_mark(archive: Path) -> Path:
    """The file that says that it could not be made: a failure costs half a minute each time."""
    return archive.with_suffix(".failed")


class Archiving(threading.Thread):
    """Makes the archive while a stack runs, until that stops."""

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
