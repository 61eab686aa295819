"""Files that only their owner may read, written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mainstem.errors import MainstemError


def write_private(path: Path, text: str) -> None:
    """Write a file of mode 0600, by a rename, so that a reader never sees half of it."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """What the system refuses, such as a write to another user's folder, as an error in words."""
    try:
        yield
    except OSError as error:
        file = str(error.filename or folder)
        raise MainstemError(
            "FILE_NOT_WRITABLE", file=file, problem=error.strerror or str(error)
        ) from None


def make_private_folder(path: Path) -> Path:
    """Make the state folder: the owner's alone.

    Root's must let others pass (not read), because root's PostgreSQL runs as another user.
    """
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o711 if os.geteuid() == 0 else 0o700)
    return path
