"""Where flows keep offsets and state: a folder per flow and generation, on any file system."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from pyspark.sql import SparkSession

from mainstem.catalog.entry import Entry
from mainstem.engine.java import java_class
from mainstem.engine.status import offsets_in
from mainstem.vocabulary import Offsets


class Checkpoints:
    """The checkpoint folders of one engine."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._spark = spark
        self._root = root

    def folder(self, entry: Entry) -> str:
        """The folder of a flow's generation."""
        return self.inside(entry.flow_id)

    def inside(self, name: str) -> str:
        """A place beside the folders of the flows."""
        if "://" in self._root:
            return f"{self._root.rstrip('/')}/{name}"
        return str(PurePosixPath(self._root) / name)

    def folders(self, folder: str) -> list[str]:
        """The folders in a folder; none when there is no such folder."""
        path = self._path(folder)
        files = self._files(path)
        if not files.exists(path):
            return []
        return [str(status.getPath().toString()) for status in files.listStatus(path)]

    def others(self, entry: Entry) -> dict[int, str]:
        """Folders of other generations of the flow: what a new one has yet to clear away."""
        found = {}
        for folder in self.folders(self._root):
            name, _, generation = PurePosixPath(folder).name.rpartition(".")
            if name == entry.name and generation.isdecimal():
                found[int(generation)] = folder
        found.pop(entry.generation, None)
        return found

    def settled(self, folder: str) -> bool:
        """True when a flow that starts there has no batch to do again."""
        return self._newest(f"{folder}/offsets") == self._newest(f"{folder}/commits")

    def delete(self, folder: str) -> None:
        """Removes a folder; no error when there is none."""
        path = self._path(folder)
        self._files(path).delete(path, True)

    def size(self, folder: str) -> int:
        """How many bytes the files in a folder have."""
        path = self._path(folder)
        return int(self._files(path).getContentSummary(path).getLength())

    def batch_end(self, folder: str, batch_id: int) -> dict[str, Offsets]:
        """Where a batch ends in each topic, from Spark's own log of offsets."""
        text = self._read(self._path(f"{folder}/offsets/{batch_id}"))
        # a version, metadata, then one line for each source
        found: dict[str, Offsets] = {}
        for line in text.splitlines()[2:]:
            found |= offsets_in(line)
        return found

    def batch_start(self, folder: str, batch_id: int) -> dict[str, Offsets]:
        """Where a batch begins in each topic: where the one before it ended, or the flow began."""
        if batch_id > 0:
            return self.batch_end(folder, batch_id - 1)
        return self._first(f"{folder}/sources/0")

    def begin(self, folder: str) -> dict[str, Offsets]:
        """Where a flow began in each topic; empty before its first batch."""
        found: dict[str, Offsets] = {}
        for source in self.folders(f"{folder}/sources"):
            found |= self._first(source)
        return found

    def end(self, folder: str) -> dict[str, Offsets]:
        """Where the last batch that is done ends in each topic; empty before the first one."""
        done = self._newest(f"{folder}/commits")
        return {} if done is None else self.batch_end(folder, done)

    def _first(self, source: str) -> dict[str, Offsets]:
        path = self._path(f"{source}/0")
        if not self._files(path).exists(path):
            return {}
        text = self._read(path)
        return {**offsets_in(text[text.index("{") :])}

    def _newest(self, folder: str) -> int | None:
        """The last batch of one of Spark's logs."""
        names = (PurePosixPath(name).name for name in self.folders(folder))
        return max((int(name) for name in names if name.isdecimal()), default=None)

    def read_note(self, folder: str, name: str, batch_id: int) -> str | None:
        """What was noted under a name for a batch; None when nothing was."""
        path = self._path(f"{folder}/{name}/{batch_id}")
        return self._read(path) if self._files(path).exists(path) else None

    def write_note(self, folder: str, name: str, batch_id: int, text: str) -> None:
        """Notes something for a batch: after a crash it is there whole or not at all."""
        path = self._path(f"{folder}/{name}/{batch_id}")
        fresh = self._path(f"{folder}/{name}/.{batch_id}.new")
        files = self._files(path)
        stream = files.create(fresh, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
        if files.rename(fresh, path):
            return
        files.delete(path, False)  # some file systems do not replace what is there
        if not files.rename(fresh, path):
            message = f"{path} could not be written"
            raise OSError(message)

    def delete_note(self, folder: str, name: str, batch_id: int) -> None:
        """Removes a note; no error when there is none."""
        self.delete(f"{folder}/{name}/{batch_id}")

    def _read(self, path: Any) -> str:
        stream = self._files(path).open(path)
        try:
            return str(java_class("org.apache.commons.io.IOUtils").toString(stream, "UTF-8"))
        finally:
            stream.close()

    def _path(self, text: str) -> Any:
        return java_class("org.apache.hadoop.fs.Path")(text)

    def _files(self, path: Any) -> Any:
        context: Any = self._spark.sparkContext
        return path.getFileSystem(context._jsc.hadoopConfiguration())
