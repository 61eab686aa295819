"""The user's editor, on some bytes."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from mainstem.errors import MainstemError


def edited(name: str, data: bytes) -> bytes:
    """What the user made of the data in $VISUAL, $EDITOR or vi, in a file of that name.

    The line end that editors put behind the last line is not taken for a change.
    """
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="mainstem-") as folder:
        file = Path(folder) / name
        file.write_bytes(data)
        try:
            done = subprocess.run([*shlex.split(editor), str(file)], check=False)
            if done.returncode != 0:
                problem = f"it ended with {done.returncode}"
                raise MainstemError("EDITOR_FAILED", editor=editor, problem=problem)
            result = file.read_bytes()
        except (OSError, ValueError) as error:
            problem = getattr(error, "strerror", None) or str(error)
            raise MainstemError("EDITOR_FAILED", editor=editor, problem=problem) from None
    return result if data.endswith(b"\n") else result.removesuffix(b"\n")
