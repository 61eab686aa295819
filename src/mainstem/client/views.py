"""The served rows of one table, by key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from mainstem.client.transport import blocking
from mainstem.client.values import as_model, dicts_reader
from mainstem.client.wire import as_text, quoted, read_json
from mainstem.errors import MainstemError

if TYPE_CHECKING:
    from mainstem.client.queries import AsyncQueries

_AT_ONCE = 500


class AsyncView:
    """Look-ups in a table. Its key and columns are asked for once."""

    def __init__(self, calls: AsyncQueries, table: str) -> None:
        self._calls = calls
        self._table = table
        self._known: dict[str, Any] | None = None

    async def get(
        self,
        key: Any = None,
        /,
        *,
        wait_for: str | None = None,
        model: type[BaseModel] | None = None,
        **columns: Any,
    ) -> Any:
        """The row with this key, a dict by column or an object of `model`; None: there is none.

        The key is a value, a dict, or given by the names of its columns: `get(page="/home")`.
        """
        known = await self._description()
        wanted = _named(known, columns if columns else key)
        row = await self._calls.get(self._table, wanted, wait_for=wait_for)
        return None if row is None else _made(dicts_reader(known["columns"])(row), model, 0)

    async def get_many(
        self,
        keys: Iterable[Any],
        *,
        wait_for: str | None = None,
        model: type[BaseModel] | None = None,
    ) -> list[Any]:
        """The rows with these keys, in their order; None for each that is not there.

        They are asked for in queries of 500 keys, each of which sees one state of the table.
        """
        known = await self._description()
        names: list[str] = known["key"]
        read = dicts_reader(known["columns"])
        wanted = []
        for key in keys:
            named = _named(known, key)
            if set(named) != set(names):
                raise _no_key(known)
            # as the answer will have it: 1 and "1" are the same key of a column of numbers
            wanted.append(tuple(read(read_json(as_text(named)))[name] for name in names))
        found: dict[tuple[Any, ...], Any] = {}
        distinct = list(dict.fromkeys(wanted))
        for begin in range(0, len(distinct), _AT_ONCE):
            some = distinct[begin : begin + _AT_ONCE]
            sql, values = _select(self._table, names, some)
            answer = await self._calls.sql(sql, values, wait_for=wait_for)
            columns = [column["name"] for column in answer["columns"]]
            for values in answer["rows"]:
                row = read(dict(zip(columns, values, strict=True)))
                found[tuple(row[name] for name in names)] = row
        return [
            None if key not in found else _made(found[key], model, index)
            for index, key in enumerate(wanted)
        ]

    async def _description(self) -> dict[str, Any]:
        if self._known is None:
            known = await self._calls.object(self._table)
            if not known.get("key"):
                raise _no_key(known)
            self._known = known
        return self._known


class View:
    """The same look-ups, each done when it returns."""

    def __init__(self, aio: AsyncView) -> None:
        self._aio = aio

    get = blocking(AsyncView.get)
    get_many = blocking(AsyncView.get_many)


def _made(row: dict[str, Any], model: type[BaseModel] | None, index: int) -> Any:
    return row if model is None else as_model(model, row, index)


def _named(known: Mapping[str, Any], key: Any) -> dict[str, Any]:
    """The key by the names of its columns."""
    names = known["key"]
    if isinstance(key, Mapping):
        return dict(key)
    values = key if isinstance(key, (tuple, list)) else (key,)
    if key is None or len(values) != len(names):
        raise _no_key(known)
    return dict(zip(names, values, strict=True))


def _no_key(known: Mapping[str, Any]) -> MainstemError:
    names = ", ".join(known.get("key") or ())
    problem = f'the key of "{known.get("name")}" is ({names})' if names else "it has no key"
    return MainstemError("BAD_REQUEST", problem=problem)


def _select(table: str, names: list[str], keys: list[tuple[Any, ...]]) -> tuple[str, list[Any]]:
    columns = ["`" + name.replace("`", "``") + "`" for name in names]
    if len(names) == 1:
        where = f"{columns[0]} IN ({', '.join('?' * len(keys))})"
    else:
        where = " OR ".join([f"({' AND '.join(f'{name} = ?' for name in columns)})"] * len(keys))
    sql = f"SELECT * FROM {quoted(table)} WHERE {where}"  # noqa: S608 - values go beside the text
    return sql, [value for key in keys for value in key]
