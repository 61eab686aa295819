from __future__ import annotations

import json
import os
import threading
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mainstem.cli.lines import BATCH_LINES, batches, numbered
from mainstem.cli.positions import parse_start, start_offsets
from mainstem.cli.record_text import compile_format, envelope, iso
from mainstem.errors import MainstemError
from mainstem.vocabulary import Record

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Gateway, Run

PATH = "/v1/streams/clicks/records"
RECORD = Record("t", 2, 17, b"k", b'{"a": 1.50}', 1_700_000_000_123, (("h", b"x"),))


def written(gateway: Gateway) -> None:
    def take(request: Any) -> Any:
        count = len(request.json()["records"])
        return answer_type({"written": count, "offsets": {"0": count}})

    gateway.on("POST", PATH, take)


answer_type: Any = None


@pytest.fixture(autouse=True)
def _answer(answer: Any) -> None:
    global answer_type  # noqa: PLW0603
    answer_type = answer


def test_lines_are_sent_as_they_are(gateway: Gateway, run: Run) -> None:
    written(gateway)
    lines = '{"amount": 12.30, "n": 123456789012345678901234567890}\n\n{"amount": 1}'
    result = run("produce", "clicks", stdin=lines)
    assert (result.code, result.out) == (0, "")
    assert "2 records written to clicks" in result.err
    body = gateway.requests[0].body
    assert b'{"value":{"amount": 12.30, "n": 123456789012345678901234567890}}' in body


def test_a_thousand_records_a_request(gateway: Gateway, run: Run, tmp_path: Path) -> None:
    written(gateway)
    file = tmp_path / "clicks.jsonl"
    file.write_text("".join(f'{{"n": {n}}}\n' for n in range(2_500)))
    assert run("produce", "clicks", "-f", str(file)).code == 0
    sizes = [len(r.json()["records"]) for r in gateway.requests]
    values = [r["value"]["n"] for q in gateway.requests for r in q.json()["records"]]
    assert max(sizes) == BATCH_LINES
    assert values == list(range(2_500))


def test_the_key_comes_from_a_field(gateway: Gateway, run: Run) -> None:
    written(gateway)
    assert run("produce", "clicks", "--key", "u", stdin='{"u": "x"}\n{"u": 7}').code == 0
    assert [r["key"] for r in gateway.requests[0].json()["records"]] == ["x", 7]
    result = run("produce", "clicks", "--key", "u", stdin='{"v": 1}')
    assert result.code == 1
    assert 'BAD_LINE: <stdin>, line 1: no field "u"' in result.err


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"a": 1', "at column"),
        (b"[1]", "not a JSON object"),
        (b'{"a": NaN}', "NaN is not JSON"),
        (b'{"a": "\xff"}', "not UTF-8"),
        (b'{"a": 1} {"a": 2}', "Extra data"),
        (b"[" * 100_000, ""),
    ],
)
def test_the_first_bad_line_is_named(gateway: Gateway, run: Run, line: bytes, problem: str) -> None:
    written(gateway)
    result = run("produce", "clicks", stdin=b'{"a": 1}\n\n' + line + b"\nworse\n")
    assert result.code == 1
    assert "BAD_LINE: <stdin>, line 3:" in result.err
    assert problem in result.err
    assert "nothing from line 1 on was written" in result.err
    assert not gateway.requests


def test_a_record_that_the_gateway_refuses_is_named_by_its_line(gateway: Gateway, run: Run) -> None:
    detail = 'record 1 does not fit "clicks": at: not a time stamp: x'
    gateway.refuse("POST", PATH, "INVALID_RECORD", 422, detail=detail)
    result = run("produce", "clicks", stdin='{"at": 1}\n\n{"at": "x"}\n')
    assert result.code == 1
    assert "BAD_LINE: <stdin>, line 3: at: not a time stamp" in result.err


def test_an_unknown_stream(gateway: Gateway, run: Run) -> None:
    gateway.refuse("POST", PATH, "UNKNOWN_RELATION", 404)
    result = run("produce", "clicks", stdin="{}")
    assert result.code == 3
    assert "UNKNOWN_RELATION" in result.err


def test_a_file_that_is_not_there(run: Run) -> None:
    assert "FILE_UNREADABLE" in run("produce", "clicks", "-f", "nowhere.jsonl").err


def test_a_line_from_a_slow_pipe_does_not_wait_for_the_next() -> None:
    reader, writer = os.pipe()
    with open(reader, "rb") as source, open(writer, "wb", buffering=0) as sink:
        sink.write(b"first\n")
        found = batches(numbered(source))
        assert [line.data for line in next(found)] == [b"first"]
        sink.write(b"second\nthird\n")
        sink.close()
        assert [line.number for batch in found for line in batch] == [2, 3]


def test_an_error_while_reading_ahead_is_raised() -> None:
    def source() -> Any:
        yield b"a\n"
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        list(batches(numbered(source())))
    assert not [t for t in threading.enumerate() if t.name == "read-lines" and not t.daemon]


# -- consume


def test_envelope_reads_what_can_be_read() -> None:
    assert envelope(RECORD) == (
        "t", 2, 17, "2023-11-14T22:13:20.123Z", "k", {"a": Decimal("1.50")}, {"h": "x"},
    )  # fmt: skip
    odd = envelope(Record("t", 0, 0, None, b"\xff\x00", 0))
    assert odd[4:6] == (None, {"base64": "/wA="})
    assert envelope(Record("t", 0, 0, b"1", b"not json", 0))[4:6] == ("1", "not json")


@pytest.mark.parametrize(
    ("text", "out"),
    [
        (r"%k %v\n", b'k {"a": 1.50}\n'),
        (r"%t/%p/%o\t%T", b"t/2/17\t1700000000123"),
        (r"%d %h 100%%\x00\\", b"2023-11-14T22:13:20.123Z h=x 100%\x00\\"),
        ("", b""),
    ],
)
def test_format(text: str, out: bytes) -> None:
    assert compile_format(text)(RECORD) == out


@pytest.mark.parametrize("text", ["%q", "%", "\\q", "\\"])
def test_a_format_that_means_nothing(text: str) -> None:
    with pytest.raises(MainstemError) as caught:
        compile_format(text)
    assert (caught.value.code, caught.value.exit_code) == ("BAD_RECORD_FORMAT", 64)
    assert caught.value.hint


def test_iso_is_utc() -> None:
    assert iso(0) == "1970-01-01T00:00:00.000Z"


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("earliest", "earliest"),
        ("latest", "latest"),
        ("-10", -10),
        ("offset:7", 7),
        ("time:2026-11-15T09:00:00Z", datetime(2026, 11, 15, 9, tzinfo=UTC)),
        ("time:2026-11-15", datetime(2026, 11, 15, tzinfo=UTC)),
        ("time:2026-11-15T10:00:00+01:00", datetime(2026, 11, 15, 9, tzinfo=UTC)),
    ],
)
def test_positions(text: str, start: Any) -> None:
    assert parse_start(text) == start


@pytest.mark.parametrize("text", ["", "5", "-0", "offset:-1", "time:soon", "Earliest", "-1\nx"])
def test_not_a_position(text: str) -> None:
    with pytest.raises(MainstemError) as caught:
        parse_start(text)
    assert (caught.value.code, caught.value.exit_code) == ("BAD_POSITION", 64)


class OffsetsByTime:
    def offsets_at(self, topic: str, timestamp_ms: int) -> dict[int, int]:
        assert (topic, timestamp_ms) == ("t", 1_000)
        return {0: 3}


def test_start_offsets_stay_inside_the_topic() -> None:
    begin, end = {0: 2, 1: 0}, {0: 10, 1: 4}

    def start(position: Any) -> dict[int, int]:
        return start_offsets(OffsetsByTime(), "t", position, begin, end)  # type: ignore[arg-type]

    assert start("earliest") == begin
    assert start("latest") == end
    assert start(1) == {0: 2, 1: 1}
    assert start(7) == {0: 7, 1: 4}
    assert start(datetime.fromtimestamp(1, UTC)) == {0: 3, 1: 4}


def test_json_of_a_decimal_value_is_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    from mainstem.cli.output import to_json

    assert json.loads(to_json(envelope(RECORD)[5])) == {"a": 1.5}
