"""Jars of the stack: from the per-user cache, an offline folder, or the Maven repository.

MAINSTEM_JARS       a folder that holds all jars: nothing is fetched
MAINSTEM_CACHE      folder of the cache; else XDG_CACHE_HOME or the user's own cache folder
MAINSTEM_MAVEN_URL  another repository, such as a company's mirror

Every jar is checked against the lock each time. A missing or damaged one is named and fetched.
"""

from __future__ import annotations

import fcntl
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx2

from mainstem.errors import MainstemError
from mainstem.local.download import download, is_intact
from mainstem.local.jars_lock import Group, Jar, locked_jars
from mainstem.local.progress import Progress, progress_on

_BARE_FS = "hadoop-bare-naked-local-fs"
_THREADS = 8
_TIMEOUT = httpx2.Timeout(30.0, connect=15.0)


def jars(
    group: Group, *, quiet: bool = False, give_up: threading.Event | None = None
) -> list[Path]:
    """Paths of the group's jars, all present and verified; fetches what is missing."""
    return provide(locked_jars(group), f"{group} jars", quiet=quiet, give_up=give_up)


class SparkJars(NamedTuple):
    """The engine's jars, by where they go."""

    jars: tuple[Path, ...]
    """For `spark.jars`."""
    bare_fs: Path
    """For `spark.driver.extraClassPath`: it must be there before the session is."""


def spark_jars(*, quiet: bool = False) -> SparkJars:
    """The group `spark`, sorted by use."""
    paths = jars("spark", quiet=quiet)
    bare_fs = next(path for path in paths if path.name.startswith(_BARE_FS))
    return SparkJars(tuple(path for path in paths if path != bare_fs), bare_fs)


def missing(group: Group) -> list[Jar]:
    """Jars of the group that are not there, or are damaged; nothing is fetched."""
    folder = offline_folder() or cache_folder()
    return _damaged(folder, locked_jars(group))


def cache_folder() -> Path:
    """Where this user's jars are kept."""
    if own := os.environ.get("MAINSTEM_CACHE"):
        return Path(own) / "jars"
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared) / "mainstem" / "jars"
    system = "Library/Caches" if sys.platform == "darwin" else ".cache"
    return Path.home() / system / "mainstem" / "jars"


def offline_folder() -> Path | None:
    """The folder that MAINSTEM_JARS names, if it is set."""
    folder = os.environ.get("MAINSTEM_JARS")
    return Path(folder) if folder else None


def repository_url() -> str:
    """Root of the Maven repository."""
    if url := os.environ.get("MAINSTEM_MAVEN_URL"):
        return url
    from jgo.constants import MAVEN_CENTRAL_URL

    return str(MAVEN_CENTRAL_URL)


def provide(
    wanted: Sequence[Jar],
    what: str,
    *,
    quiet: bool = False,
    give_up: threading.Event | None = None,
) -> list[Path]:
    """Paths of these jars, in order; CancelledError when `give_up` is set meanwhile."""
    if offline := offline_folder():
        for jar in _damaged(offline, wanted):
            state = "is damaged" if (offline / jar.file_name).exists() else "is missing"
            problem = f"{jar.file_name} {state} in {offline}, where MAINSTEM_JARS points"
            raise MainstemError("JAR_UNAVAILABLE", coordinate=jar.coordinate, problem=problem)
        return [offline / jar.file_name for jar in wanted]
    folder = cache_folder()
    if _damaged(folder, wanted):
        folder.mkdir(parents=True, exist_ok=True)
        with progress_on(sys.stderr, quiet=quiet) as progress, _one_at_a_time(folder, progress):
            # another process may have fetched them while this one waited
            if todo := _damaged(folder, wanted):
                _fetch(folder, todo, what, progress, give_up or threading.Event())
    return [folder / jar.file_name for jar in wanted]


def _damaged(folder: Path, wanted: Sequence[Jar]) -> list[Jar]:
    with ThreadPoolExecutor(_THREADS) as pool:
        intact = pool.map(lambda jar: is_intact(folder / jar.file_name, jar), wanted)
        return [jar for jar, good in zip(wanted, intact, strict=True) if not good]


@contextmanager
def _one_at_a_time(folder: Path, progress: Progress) -> Iterator[None]:
    """A lock on the cache, so that two processes never write the same file."""
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.say("Another process is fetching jars; waiting for it.")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fetch(
    folder: Path,
    todo: Sequence[Jar],
    what: str,
    progress: Progress,
    given_up: threading.Event,
) -> None:
    for jar in todo:
        path = folder / jar.file_name
        if path.exists():
            progress.say(f"{jar.coordinate} is damaged in the cache; fetching it again.")
            path.unlink()
    parts = sum(_size(folder / f"{jar.file_name}.part") for jar in todo)
    progress.begin(what, len(todo), sum(jar.size for jar in todo), parts)
    url = repository_url()
    failed = threading.Event()

    def advance(count: int) -> None:
        if failed.is_set() or given_up.is_set():
            raise CancelledError
        progress.advance(count)

    with (
        httpx2.Client(follow_redirects=True, timeout=_TIMEOUT) as client,
        ThreadPoolExecutor(_THREADS) as pool,
    ):
        running = [
            pool.submit(download, client, url, jar, folder / jar.file_name, advance) for jar in todo
        ]
        try:
            for future in running:
                future.result()
        except BaseException:
            failed.set()  # what has come so far is resumed next time
            pool.shutdown(cancel_futures=True)
            raise
    progress.end()


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
