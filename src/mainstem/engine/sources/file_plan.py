"""Which parts of which files a batch of the source `files` reads, by what is there and known.

A file is known by its path; one that is read as it grows by its number in the file system and its
first bytes, so that it stays known under another name, and one that gets a number that another had
is new. What is known is never forgotten: a folder that is empty for a moment, such as a mount that
is away, must not make all of its files new.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from mainstem.engine.sources.file_parts import Kind, Piece, head_of, line_end, parquet_problem
from mainstem.errors import MainstemError

_MOST_FILES = 2_000


@dataclass(slots=True)
class Plan:
    """What a batch is to read, and what is behind it."""

    pieces: list[Piece]
    waiting: int = 0
    """Bytes of files that are there and whole, and not in the plan."""
    altered: int = 0
    """Files that were changed after they had been read."""


class Files:
    """The files of one source, over its batches; for one thread."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._known: dict[str, Piece] = {}
        """By key, the last part of each file that was taken."""

    @property
    def count(self) -> int:
        """Files of which something has been read."""
        return len(self._known)

    def plan(self, now: float) -> Plan:
        """The next parts, the oldest files first; SOURCE_FOLDER when the folder cannot be read."""
        plan = Plan([])
        left = self._kind.batch_bytes
        for found in sorted(_found(self._kind), key=lambda f: (f.changed, f.file)):
            before = self._before(found)
            if before is not None and before.done:
                plan.altered += (before.size, before.changed) != (found.size, found.changed)
            elif not self._kind.tail and now - found.changed / 1e9 < self._kind.settle:
                pass  # who writes it may not have done yet
            elif left <= 0 or len(plan.pieces) >= _MOST_FILES:
                plan.waiting += found.size - (before.end if before and not self._by_group else 0)
            elif (made := self._piece(found, before, left)) is not None:
                plan.pieces.append(made.piece)
                left -= made.bytes
                plan.waiting += made.rest
        return plan

    def take(self, pieces: Sequence[Piece]) -> None:
        """These parts are read, or will be."""
        self._known.update((piece.key, piece) for piece in pieces)

    def to_json(self) -> list[dict[str, Any]]:
        """All that is known."""
        return [asdict(piece) for piece in self._known.values()]

    def from_json(self, document: Sequence[dict[str, Any]]) -> None:
        """What was known once."""
        self.take([Piece(**fields) for fields in document])

    @property
    def _by_group(self) -> bool:
        return self._kind.by_group

    def _before(self, found: _Found) -> Piece | None:
        before = self._known.get(found.key)
        if before is None or not self._kind.tail:
            return before
        if found.size < before.end:
            return None  # it was cut, and begins anew
        length, _, _ = before.head.partition(":")
        return before if head_of(self._kind.path(found.file), int(length)) == before.head else None

    def _piece(self, found: _Found, before: Piece | None, left: int) -> _Made | None:
        start, first = (0, 1) if before is None else (before.end, before.next)
        empty = Piece(
            found.key, found.file, start, start, first, first, found.size, found.changed, done=True
        )
        moved = before is not None and (before.size, before.changed) != (found.size, found.changed)
        if moved and not self._kind.tail:
            cause = "it was changed while it was being read"
            return _Made(replace(empty, cause=cause), 0, 0)
        try:
            extent = (self._groups if self._by_group else self._lines)(found, start, left)
        except FileNotFoundError:
            return None  # gone since it was seen
        except OSError as error:
            cause = f"it cannot be read: {error.strerror or error}"
            return _Made(replace(empty, cause=cause), 0, 0)
        except ValueError as problem:
            return _Made(replace(empty, cause=str(problem)), 0, 0)
        if extent is None:
            return None
        head = before.head if before is not None else ""
        if self._kind.tail and before is None:
            head = head_of(self._kind.path(found.file), extent.end)
        piece = replace(
            empty,
            end=extent.end,
            next=first + extent.records,
            head=head,
            done=extent.rest == 0 and not self._kind.tail,
        )
        return _Made(piece, extent.bytes, extent.rest)

    def _lines(self, found: _Found, start: int, left: int) -> _Extent | None:
        """A part of lines; ValueError when it cannot be one."""
        if found.size <= start:
            return None
        path = self._kind.path(found.file)
        if start == 0:
            self._kind.check_header(path)
        end, lines = line_end(path, start, found.size, left, whole=not self._kind.tail)
        if end == start:
            return None  # not one line has ended
        size, rest = end - start, found.size - end
        # of a file that grows, what is behind the last end of a line is not there yet
        return _Extent(end, lines, size, rest if not self._kind.tail or size >= left else 0)

    def _groups(self, found: _Found, start: int, left: int) -> _Extent | None:
        """A part of row groups, as many as fit; one at least."""
        try:
            metadata = pq.read_metadata(self._kind.path(found.file))
        except ValueError as error:  # whatever Arrow finds wrong with it is one of these
            message = f"it is not Parquet: {error}"
            raise ValueError(message) from None
        problem = parquet_problem(metadata.schema.to_arrow_schema(), self._kind.columns)
        if problem is not None:
            raise ValueError(problem)
        groups = [metadata.row_group(i) for i in range(start, metadata.num_row_groups)]
        end, rows, size = start, 0, 0
        for group in groups:
            if end > start and size + group.total_byte_size > left:
                break
            end, rows, size = end + 1, rows + group.num_rows, size + group.total_byte_size
        return _Extent(end, rows, size, sum(g.total_byte_size for g in groups[end - start :]))


class _Extent(NamedTuple):
    """How far a part goes."""

    end: int
    records: int
    bytes: int
    rest: int
    """Bytes behind it."""


class _Made(NamedTuple):
    piece: Piece
    bytes: int
    rest: int


class _Found(NamedTuple):
    """A file that is there."""

    file: str
    key: str
    size: int
    changed: int


def _found(kind: Kind) -> Iterator[_Found]:
    """The files of the pattern, without empty and hidden ones."""
    root = Path(kind.folder)
    try:
        next(root.iterdir(), None)
        paths = list(root.glob(kind.pattern))
    except (OSError, ValueError, NotImplementedError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise MainstemError("SOURCE_FOLDER", folder=kind.folder, problem=problem) from None
    inside = root.resolve()
    for path in paths:
        parts = path.relative_to(root).parts
        if any(part.startswith((".", "_")) for part in parts):
            continue
        try:
            facts = path.stat()
            # a link may not lead elsewhere
            own = path.is_file() and path.resolve().is_relative_to(inside)
        except OSError:
            continue  # gone since it was listed
        if own and facts.st_size:
            file = str(path.relative_to(root))
            key = f"{facts.st_dev}:{facts.st_ino}" if kind.tail else file
            yield _Found(file, key, facts.st_size, facts.st_mtime_ns)


def present(kind: Kind) -> list[str]:
    """The files that are there, the oldest first."""
    return [found.file for found in sorted(_found(kind), key=lambda f: (f.changed, f.file))]


def find_by_key(kind: Kind, key: str) -> str | None:
    """The path of a file that has another name by now."""
    return next((found.file for found in _found(kind) if found.key == key), None)
