"""The answer to a query: rows in Python's types, and as Arrow, pandas and polars have them."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from mainstem.client import html
from mainstem.client.values import arrow_type, as_model, rows_reader
from mainstem.errors import MainstemError

Item = TypeVar("Item")


class Answer(Generic[Item]):
    """Rows, or the message of a statement that has none.

    `rows` are tuples; going through the answer gives dicts, or objects of the model that was asked
    for. `freshness` says how far each table had come, `truncated` that there are more rows.
    """

    def __init__(self, document: Mapping[str, Any], model: type[BaseModel] | None = None) -> None:
        self._document = document
        self._model = model
        self.columns: tuple[tuple[str, str], ...] = tuple(
            (str(c["name"]), str(c["type"])) for c in document.get("columns", ())
        )
        self.truncated = bool(document.get("truncated"))
        self.freshness: Mapping[str, Any] | None = document.get("freshness")
        self.message: str | None = document.get("message")
        self.detail: Mapping[str, Any] = document.get("detail") or {}
        self.warnings: tuple[str, ...] = tuple(map(str, document.get("warnings") or ()))
        self.hints: tuple[Any, ...] = tuple(document.get("hints") or ())

    @cached_property
    def rows(self) -> list[tuple[Any, ...]]:
        """The rows, each value in the type of its column."""
        read = rows_reader(self._document.get("columns", ()))
        return [read(row) for row in self._document.get("rows", ())]

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [name for name, _ in self.columns]

    def dicts(self) -> list[dict[str, Any]]:
        """The rows by column."""
        names = self.names
        return [dict(zip(names, row, strict=True)) for row in self.rows]

    def objects(self) -> list[Item]:
        """The rows as objects of the model, or as dicts; ROW_NOT_A_MODEL if one does not fit."""
        rows: list[Any] = self.dicts()
        if self._model is not None:
            rows = [as_model(self._model, row, index) for index, row in enumerate(rows)]
        return rows

    def arrow(self) -> Any:
        """A `pyarrow.Table` with the types of the columns."""
        pa = package("pyarrow", "Answer.arrow()")
        columns = list(zip(*self.rows, strict=True)) or [()] * len(self.columns)
        arrays = [
            _array(pa, values, type_)
            for values, (_, type_) in zip(columns, self.columns, strict=True)
        ]
        return pa.Table.from_arrays(arrays, names=self.names)

    def pandas(self) -> Any:
        """A `pandas.DataFrame`; decimals, dates and nested values are Python's objects.

        Integers are nullable ones (`Int64`) where one of them is NULL.
        """
        pd = package("pandas", "Answer.pandas()")
        table = self.arrow()
        # a float, which a plain column of integers becomes, would lose digits of large ones
        holes = any(c.null_count for c in table.columns if str(c.type).startswith("int"))
        return table.to_pandas(types_mapper=_nullable(pd).get if holes else None)

    def polars(self) -> Any:
        """A `polars.DataFrame`."""
        return package("polars", "Answer.polars()").from_arrow(self.arrow())

    def __len__(self) -> int:
        return len(self._document.get("rows", ()))

    def __iter__(self) -> Iterator[Item]:
        return iter(self.objects())

    def __bool__(self) -> bool:
        """An answer is there, even one without rows."""
        return True

    def __repr__(self) -> str:
        if self.message is not None:
            return self.message
        return f"<Answer {len(self)} rows: {', '.join(f'{n} {t}' for n, t in self.columns)}>"

    def _repr_html_(self) -> str:
        if self.message is not None:
            return html.preformatted(self.message)
        shown = self.rows[: html.MOST_ROWS]
        note = f"{len(self)} rows" + (", and more in the table" if self.truncated else "")
        if len(shown) < len(self):
            note += f"; the first {len(shown)} are shown"
        if self.freshness:
            note += f"; as of {self.freshness.get('as_of', '')}"
        return html.table(self.names, shown, note)


def package(name: str, what: str) -> Any:
    """A package that only some need; PACKAGE_MISSING names it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        missing = name.partition(".")[0]
        raise MainstemError("PACKAGE_MISSING", what=what, package=missing) from None


def _nullable(pd: Any) -> dict[Any, Any]:
    import pyarrow as pa

    return {
        pa.int8(): pd.Int8Dtype(),
        pa.int16(): pd.Int16Dtype(),
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
    }


def _array(pa: Any, values: Any, type_: str) -> Any:
    wanted = arrow_type(type_)
    if wanted is None:
        return _as_json(pa, values)
    if type_.startswith("map<"):
        values = [None if value is None else list(value.items()) for value in values]
    try:
        return pa.array(values, wanted)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        # a sum of decimals may have more digits than its type says, a time may be infinite
        return _as_json(pa, values)


def _as_json(pa: Any, values: Any) -> Any:
    """As Arrow finds them; values that do not go together as texts of JSON."""
    from mainstem.client.wire import as_text

    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        texts = [v if v is None or isinstance(v, str) else as_text(v) for v in values]
        return pa.array(texts, pa.string())
