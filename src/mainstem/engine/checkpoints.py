"""Where flows keep offsets and state: a folder per flow and generation, on any file system."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from pyspark.sql import SparkSession

from mainstem.catalog.entry import Entry


class Checkpoints:
    """The checkpoint folders of one engine."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._spark = spark
        self._root = root

    def folder(self, entry: Entry) -> str:
        """The folder of a flow's generation."""
        if "://" in self._root:
            return f"{self._root.rstrip('/')}/{entry.flow_id}"
        return str(PurePosixPath(self._root) / entry.flow_id)

    def older(self, entry: Entry) -> list[str]:
        """Folders of other generations of the flow: what a rebuild has yet to clear away."""
        path = self._path(self._root)
        files = self._files(path)
        if not files.exists(path):
            return []
        found = []
        for status in files.listStatus(path):
            folder = status.getPath()
            name, _, generation = str(folder.getName()).rpartition(".")
            if name == entry.name and generation != str(entry.generation):
                found.append(str(folder.toString()))
        return found

    def delete(self, folder: str) -> None:
        """Removes a folder; no error when there is none."""
        path = self._path(folder)
        self._files(path).delete(path, True)

    def _path(self, text: str) -> Any:
        jvm: Any = self._spark._jvm
        return jvm.org.apache.hadoop.fs.Path(text)

    def _files(self, path: Any) -> Any:
        context: Any = self._spark.sparkContext
        return path.getFileSystem(context._jsc.hadoopConfiguration())
