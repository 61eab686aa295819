"""Secrets of connectors, in files that only Connect's workers and their owner read.

A configuration refers to them (`${file:path:key}`), so that neither Connect's topics nor its REST
interface ever have one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mainstem.connect.properties import properties_text
from mainstem.local.private_files import write_private

_SUFFIX = ".properties"


class KeptSecrets:
    """One file for each source, in a folder that the workers see under the same path."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def reference(self, source: str, key: str) -> str:
        """What stands for a secret in a configuration."""
        return f"${{file:{self._file(source)}:{key}}}"

    def write(self, source: str, values: Mapping[str, str]) -> bool:
        """Keep these values of a source, and no others; True when they were not there already."""
        text, file = properties_text(values), self._file(source)
        try:
            if file.read_text("utf-8") == text:
                return False
        except FileNotFoundError:
            if not values:
                return False
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(file, text)
        return True

    def forget(self, source: str) -> None:
        """Remove what was kept of a source; harmless when there is nothing."""
        self._file(source).unlink(missing_ok=True)

    def _file(self, source: str) -> Path:
        return self._folder / f"{source.lower()}{_SUFFIX}"
