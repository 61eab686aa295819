"""TRANSFORM (...): how it is read, what it makes of columns, and what it refuses, and where."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter

from mainstem.catalog.fingerprint import fingerprint
from mainstem.definitions.model import Definition
from mainstem.definitions.parse import parse
from mainstem.definitions.transform_effects import Rows, after_all
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column

COLUMNS = (
    Column("id", "bigint"),
    Column("Email", "string"),
    Column("total", "decimal(10,2)"),
    Column("at", "timestamp"),
    Column("day", "date"),
    Column("raw", "binary"),
    Column("paid", "boolean"),
    Column("items", "array<string>"),
    Column("address", "struct<street:string,geo:struct<lat:double,lon:double>>"),
)


def sink(transforms: str) -> Definition:
    text = (
        f"CREATE SINK x FROM s WITH (connector = 'files', folder = '/x')\nTRANSFORM ({transforms})"
    )
    [statement] = parse(text, "p.sql")
    made: Definition = statement.definition  # type: ignore[union-attr]
    return made


def effect(transforms: str, key: tuple[str, ...] = ("id",)) -> Rows:
    return after_all(Rows(COLUMNS, key), sink(transforms).transforms)


def failure(transforms: str, key: tuple[str, ...] = ("id",)) -> MainstemError:
    with pytest.raises(MainstemError) as caught:
        effect(transforms, key)
    return caught.value


@pytest.mark.parametrize(
    "written",
    [
        "drop(email, total)",
        "keep(id, email)",
        "rename(email, Mail)",
        "cast(total, DECIMAL(12,2))",
        "mask(email, hash)",
        "mask(email, hash, '${env:SALT}')",
        "mask(email, redact)",
        "mask(email, partial, 4)",
        "insert(_source, 'shop')",
        "insert(n, -9223372036854775808)",
        "insert(b, true)",
        "insert(where_from, _topic)",
        "filter(total >= 0 AND Email IS NOT NULL)",
        "flatten(address)",
        "timestamp(at, 'yyyy-MM-dd')",
        "timestamp(at, millis)",
    ],
)
def test_a_transform_is_shown_as_it_is_written(written: str) -> None:
    [transform] = sink(written).transforms
    assert transform.shown == written
    kept = TypeAdapter(Definition)
    definition = sink(written)
    assert kept.validate_json(kept.dump_json(definition)) == definition


@pytest.mark.parametrize(
    ("transforms", "column", "type_"),
    [
        ("rename(EMAIL, mail)", "mail", "string"),
        ("cast(total, STRING)", "total", "string"),
        ("cast(at, DATE)", "at", "date"),
        ("mask(total, hash)", "total", "string"),
        ("mask(raw, hash)", "raw", "string"),
        ("mask(total, redact)", "total", "decimal(10,2)"),
        ("mask(email, partial, 2)", "Email", "string"),
        ("insert(o, _offset)", "o", "bigint"),
        ("flatten(address)", "address_geo_lat", "double"),
        ("timestamp(at, 'HH:mm')", "at", "string"),
        ("timestamp(day, seconds)", "day", "bigint"),
        ("timestamp(email, 'yyyy')", "Email", "timestamp"),
        ("rename(id, n), timestamp(n, micros)", "n", "timestamp"),
        ("cast(total, BIGINT), timestamp(total, millis), cast(total, DATE)", "total", "date"),
    ],
)
def test_what_becomes_of_a_column(transforms: str, column: str, type_: str) -> None:
    rows = effect(transforms, key=())
    assert {c.name: c.type for c in rows.columns}[column] == type_


def test_columns_stay_where_they_were() -> None:
    rows = effect("drop(total, at, day, raw, paid, items), rename(email, e), flatten(address)")
    assert [c.name for c in rows.columns] == [
        "id",
        "e",
        "address_street",
        "address_geo_lat",
        "address_geo_lon",
    ]
    assert effect("keep(address, id)").columns == (COLUMNS[0], COLUMNS[-1])


def test_a_key_may_get_another_name_and_be_hashed() -> None:
    rows = effect("rename(id, order_id), mask(order_id, hash)")
    assert rows.key == ("order_id",)
    assert rows.columns[0] == Column("order_id", "string")


@pytest.mark.parametrize(
    ("transforms", "code", "place"),
    [
        ("drop(mail)", "UNKNOWN_COLUMN", 17),
        ("drop(total),\n rename(total, t)", "UNKNOWN_COLUMN", 9),
        ("drop(address.street)", "INVALID_TRANSFORM", 17),
        ("drop(id)", "INVALID_TRANSFORM", 17),
        ("keep(email)", "INVALID_TRANSFORM", 12),
        ("cast(id, INT)", "INVALID_TRANSFORM", 17),
        ("mask(id, redact)", "INVALID_TRANSFORM", 17),
        ("timestamp(id, millis)", "INVALID_TRANSFORM", 22),
        ("rename(email, ID)", "DUPLICATE_COLUMN", 26),
        ("insert(total, 1)", "DUPLICATE_COLUMN", 19),
        ("insert(address_street, 1), flatten(address)", "DUPLICATE_COLUMN", 39),
        ("insert(_topic, 'x')", "RESERVED_NAME", 19),
        ("insert(x, _tpic)", "INVALID_TRANSFORM", 22),
        ("insert(x, 1.5)", "INVALID_TRANSFORM", 22),
        ("insert(x, 9223372036854775808)", "INVALID_TRANSFORM", 22),
        ("cast(items, STRING)", "INVALID_TRANSFORM", 12),
        ("cast(at, BIGINT)", "INVALID_TRANSFORM", 12),
        ("cast(email, TEXT)", "UNKNOWN_TYPE", 24),
        ("mask(total, partial, 2)", "INVALID_TRANSFORM", 12),
        ("mask(items, hash)", "INVALID_TRANSFORM", 12),
        ("mask(email, hashed)", "INVALID_TRANSFORM", 24),
        ("mask(email, partial, 0)", "INVALID_TRANSFORM", 33),
        ("mask(email, hash, 'salt')", "SECRET_IN_PLAIN", 30),
        ("mask(email, hash, '${env:}')", "SECRET_IN_PLAIN", 30),
        ("flatten(items)", "INVALID_TRANSFORM", 12),
        ("timestamp(total, 'yyyy')", "INVALID_TRANSFORM", 12),
        ("timestamp(at, ' ')", "INVALID_TRANSFORM", 26),
        ("timestamp(at, hours)", "INVALID_TRANSFORM", 26),
        ("masks(email, hash)", "UNKNOWN_TRANSFORM", 12),
        ("filter(count(*) > 1)", "NOT_SUPPORTED", 19),
        ("filter(total > now())", "NOT_SUPPORTED", 27),
        ("filter(java_method('a', 'b') = total)", "FUNCTION_NOT_ALLOWED", 19),
        ("drop()", "SQL_SYNTAX", 17),
        ("drop(email) rename(total, t)", "SQL_SYNTAX", 24),
        ("", "SQL_SYNTAX", 12),
    ],
)
def test_what_cannot_be_done_is_told_at_its_place(transforms: str, code: str, place: int) -> None:
    error = failure(transforms)
    assert error.code == code, error
    assert error.location is not None
    assert (error.location.file, error.location.column) == ("p.sql", place)


def test_the_nearest_name_is_told() -> None:
    assert 'Did you mean "Email"?' in failure("drop(emial)").hint
    assert 'Did you mean "mask"?' in failure("maks(email, hash)").hint
    assert "flatten(address)" in failure("drop(address.street)").hint
    assert "timestamp(at, millis)" in failure("cast(at, BIGINT)").hint


def test_a_salt_in_plain_text_is_not_shown() -> None:
    error = failure("mask(email, hash, 'pepper')")
    assert "pepper" not in error.render()


def test_all_columns_cannot_go() -> None:
    names = ", ".join(column.name for column in COLUMNS)
    assert failure(f"drop({names})", key=()).code == "INVALID_TRANSFORM"


def test_other_transforms_are_another_sink_and_layout_is_not() -> None:
    prints = {
        fingerprint(sink(written), ())
        for written in ("drop(a), filter(b > 0)", "DROP( A ),\n filter(b>0 -- so\n)")
    }
    assert len(prints) == 1
    assert fingerprint(sink("filter(b > 0), drop(a)"), ()) not in prints
