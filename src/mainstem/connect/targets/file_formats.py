"""Rows to a file, some at a time, in each of the formats of the sink `files`."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq


class FileWriter(Protocol):
    """A file that is being written."""

    def write(self, rows: pa.Table) -> None:
        """Adds rows."""
        ...

    def close(self) -> None:
        """Ends the file."""
        ...


def writer_for(format: str, path: Path, schema: pa.Schema) -> FileWriter:
    """A new file; of `jsonl`, the only column has the lines."""
    if format == "parquet":
        return _Parquet(path, schema)
    return _Csv(path, schema) if format == "csv" else _Lines(path)


class _Parquet:
    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._writer = pq.ParquetWriter(path, schema, compression="zstd")

    def write(self, rows: pa.Table) -> None:
        self._writer.write_table(rows)

    def close(self) -> None:
        self._writer.close()


class _Csv:
    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._writer = pacsv.CSVWriter(path, schema)

    def write(self, rows: pa.Table) -> None:
        self._writer.write_table(rows)

    def close(self) -> None:
        self._writer.close()


class _Lines:
    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")

    def write(self, rows: pa.Table) -> None:
        self._file.writelines(f"{line}\n".encode() for line in rows.column(0).to_pylist())

    def close(self) -> None:
        self._file.close()
