"""Requests of webhooks: what is written, what is refused, and what is known already."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mainstem.connect.brought import definitions_of
from mainstem.connect.captures import capture_of
from mainstem.connect.catalogue import spec_of
from mainstem.connect.listening.running import RUNNING, Log, Task
from mainstem.connect.listening.webhook import ID_HEADER, Webhook
from mainstem.connect.secrets import Secrets
from mainstem.connect.spec import Role
from mainstem.definitions.model import Connection, Definition, Kind
from mainstem.errors import MainstemError
from mainstem.log.producer import Outgoing
from mainstem.vocabulary import SourceLocation


class Writer:
    """A log in memory."""

    def __init__(self):
        self.written = []
        self.problem = None
        self.hold = None

    def write(self, topic, records):
        if self.hold is not None:
            assert self.hold.wait(10)
        if self.problem is not None:
            raise self.problem
        self.written += [(topic, json.loads(r.value), dict(r.headers)) for r in records]
        return {}


def encode(stream, rows):
    return [Outgoing(None, json.dumps(row, default=str).encode()) for row in rows]


def stream_and_options(**written):
    spec = spec_of(Role.SOURCE, "webhook")
    options = spec.resolve(written, Secrets(Path("/nowhere"), {"S": "hush"}))
    source = Definition(
        "hook", Kind.SOURCE, "", SourceLocation("p.sql", 1, 1), "",
        captures=Connection("webhook", tuple(written.items())),
    )  # fmt: skip
    [stream] = definitions_of(source, capture_of("webhook").look("hook", options))
    return stream, options


def hook(**written):
    stream, options = stream_and_options(**written)
    made = Webhook(Task("hook", "hook.1", stream, options), Log(None, Writer()))
    made.told.state = RUNNING  # `start` would read the log for ids
    return made


def refusal(call, *arguments):
    with pytest.raises(MainstemError) as caught:
        call(*arguments)
    return caught.value


def test_without_columns_a_request_is_a_record():
    stream, _ = stream_and_options()
    assert (stream.name, stream.event_time, stream.source) == ("hook_events", "at", "hook")
    made = hook()
    headers = {"x-event": "push", "cookie": "private", "authorization": "Bearer x"}
    assert made.take(headers, b'[{"a": 1.10}, 2]', encode).written == 1
    [(topic, row, _)] = made._log.sender.written
    assert topic == "hook_events"
    assert row["body"] == '[{"a": 1.10}, 2]'
    assert row["headers"] == {"x-event": "push"}
    assert made.told.records == 1


def test_with_columns_objects_are_records_and_other_fields_are_left_out():
    made = hook(columns="id BIGINT, who STRUCT<name: STRING>, tags ARRAY<STRUCT<t: INT>>")
    body = b'[{"id":1,"x":2,"who":{"name":"a","y":3}},{"id":2,"tags":[{"t":1,"z":0}]}]'
    assert made.take({}, body, encode).written == 2
    assert [row for _, row, _ in made._log.sender.written] == [
        {"id": 1, "who": {"name": "a"}},
        {"id": 2, "tags": [{"t": 1}]},
    ]


@pytest.mark.parametrize(
    ("body", "path"), [(b"{", ""), (b"\xff", ""), (b"3", ""), (b'[{"id":1},3]', "[1]")]
)
def test_a_body_that_does_not_fit_is_refused_whole(body, path):
    made = hook(columns="id BIGINT")
    error = refusal(made.take, {}, body, encode)
    assert (error.code, error.status, error.params["path"]) == ("INVALID_RECORD", 422, path)
    assert made._log.sender.written == []
    assert made.told.detail["refused"] == 1


def test_size_signature_and_state():
    made = hook(max_bytes="10", signature="github", secret="${env:S}")
    assert refusal(made.take, {}, b"[1,2,3,4,5,6]", encode).status == 413
    assert refusal(made.take, {}, b"[]", encode).status == 401
    made.told.state = "starting"
    assert refusal(made.take, {}, b"[]", encode).status == 503
    made.told.state = RUNNING
    made.stop()
    assert refusal(made.take, {}, b"[]", encode).code == "SOURCE_NOT_READY"


def test_a_request_that_comes_again_is_written_once():
    made = hook(columns="id BIGINT", id="header:X-Delivery")
    first = made.take({"x-delivery": "a"}, b'{"id":1}', encode)
    again = made.take({"x-delivery": "a"}, b'{"id":1}', encode)
    other = made.take({"x-delivery": "b"}, b'{"id":1}', encode)
    assert [(t.written, t.duplicate) for t in (first, again, other)] == [
        (1, False), (0, True), (1, False),
    ]  # fmt: skip
    assert [h[ID_HEADER] for _, _, h in made._log.sender.written] == [b"a", b"b"]
    assert made.told.detail["duplicates"] == 1
    error = refusal(made.take, {}, b'{"id":1}', encode)
    assert (error.code, error.params["path"]) == ("INVALID_RECORD", "header:X-Delivery")


def test_what_was_not_written_is_not_known():
    made = hook(id="$.data.id")
    made._log.sender.problem = MainstemError("LOG_UNREACHABLE", servers="nowhere")
    assert refusal(made.take, {}, b'{"data":{"id":7}}', encode).status == 503
    made._log.sender.problem = None
    assert made.take({}, b'{"data":{"id":7}}', encode).written == 1
    assert made.take({}, b'{"data":{"id":7}}', encode).duplicate
    assert made.told.detail["refused"] == 0


def test_requests_of_one_id_wait_for_each_other():
    made = hook(id="$.id")
    made._log.sender.hold = threading.Event()
    with ThreadPoolExecutor(5) as pool:
        takes = [pool.submit(made.take, {}, b'{"id":1}', encode) for _ in range(5)]
        made._log.sender.hold.set()
        taken = [take.result() for take in takes]
    assert sorted(t.duplicate for t in taken) == [False, True, True, True, True]
    assert len(made._log.sender.written) == 1


@pytest.mark.parametrize(
    ("written", "option"),
    [
        ({"signature": "github"}, "signature"),
        ({"secret": "${env:S}"}, "secret"),
        ({"header": "X-A"}, "header"),
        ({"id": "delivery"}, "id"),
        ({"id": "$."}, "id"),
        ({"key": "id"}, "key"),
        ({"columns": "id BIGINT", "key": "ident"}, "key"),
        ({"columns": "id BIGINT", "event_time": "id"}, "event_time"),
        ({"columns": "id BIGNIT"}, "columns"),
        ({"columns": "id BIGINT, ID INT"}, "columns"),
        ({"columns": "id BIGINT AS sequence()"}, "columns"),
        ({"columns": "id BIGINT,"}, "columns"),
        ({"retention": "long"}, "retention"),
    ],
)
def test_options_that_do_not_fit_are_refused_at_their_name(written, option):
    error = refusal(lambda: stream_and_options(**written))
    assert (error.code, error.params["option"]) == ("INVALID_OPTION", option)
