"""Documents in the request and reply topics: cut, put together, errors raised again."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mainstem.errors import MainstemError
from mainstem.log import wire
from mainstem.vocabulary import Record, SourceLocation


def records(id: str, document: dict[str, Any]) -> list[Record]:
    return [
        Record("t", 0, n, out.key, out.value, 0, out.headers)
        for n, out in enumerate(wire.to_records(id, document))
    ]


def test_a_large_document_goes_in_parts_that_fit() -> None:
    document = {"chunk": {"text": "x" * 2_000_000}}
    parts = records("a", document)
    assert len(parts) > 1
    assert all(len(part.value or b"") < 1_000_000 for part in parts)
    documents = wire.Documents()
    assert [d for part in parts for d in documents.add(part)] == [("a", document)]


def test_parts_of_two_requests_may_mix() -> None:
    first, second = {"chunk": "a" * 1_000_000}, {"chunk": "b" * 1_000_000}
    documents = wire.Documents()
    mixed = [
        r for pair in zip(records("1", first), records("2", second), strict=True) for r in pair
    ]
    assert [d for r in mixed for d in documents.add(r)] == [("1", first), ("2", second)]


def test_a_document_whose_beginning_is_missing_is_left_out() -> None:
    documents = wire.Documents()
    parts = records("1", {"chunk": "a" * 1_000_000})
    assert [d for r in parts[1:] for d in documents.add(r)] == []
    foreign = Record("t", 0, 0, None, b"hello", 0)
    assert list(documents.add(foreign)) == []


def test_an_error_is_raised_again_as_it_was() -> None:
    place = SourceLocation("q.sql", 3, 7, "SELECT x")
    error = MainstemError("UNKNOWN_COLUMN", location=place, column="x", known="a, b", suggestion="")
    (_, document), *_ = [
        d
        for r in records("1", {"error": wire.error_to_document(error)})
        for d in wire.Documents().add(r)
    ]
    again = wire.error_from_document(document["error"])
    assert (again.code, again.location, again.problem()) == (error.code, place, error.problem())


def test_an_error_of_a_newer_version_is_not_lost() -> None:
    document = {"title": "NOT_YET_INVENTED", "detail": "something new", "params": {}}
    assert wire.error_from_document(document).code == "ENGINE_FAILED"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), json_values))
def test_any_document_comes_back(document: dict[str, Any]) -> None:
    documents = wire.Documents()
    assert [d for r in records("x", document) for d in documents.add(r)] == [("x", document)]
