"""The syslog source on real sockets, with a log in memory: bounds, failures, and the end."""

import json
import socket
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from mainstem.connect.brought import definitions_of
from mainstem.connect.captures import capture_of
from mainstem.connect.catalogue import spec_of
from mainstem.connect.listening import syslog as module
from mainstem.connect.listening.intake import Intake
from mainstem.connect.listening.running import Log, Task
from mainstem.connect.listening.syslog import Syslog
from mainstem.connect.secrets import Secrets
from mainstem.connect.spec import Role
from mainstem.definitions.model import Connection, Definition, Kind
from mainstem.errors import MainstemError
from mainstem.testing.ports import free_port
from mainstem.testing.waiting import eventually
from mainstem.vocabulary import QUARANTINE_TOPIC, SourceLocation

MESSAGE = b"<13>Oct 11 22:14:15 h a: "


class Sender:
    """A log in memory, which can be away, or wait."""

    def __init__(self):
        self.records = []
        self.away = False
        self.calls = 0
        self.open = threading.Event()
        self.open.set()

    def send(self, topic, records, timeout=30.0):
        self.calls += 1
        assert self.open.wait(30)
        if self.away:
            raise MainstemError("LOG_UNREACHABLE", servers="nowhere")
        self.records += [(record.topic or topic, record) for record in records]
        return {}

    @property
    def messages(self):
        return [json.loads(r.value)["message"] for topic, r in self.records if topic == "s_events"]


def task(**written):
    spec = spec_of(Role.SOURCE, "syslog")
    options = spec.resolve(written, Secrets(Path("/nowhere"), {}))
    where = SourceLocation("p.sql", 1, 1)
    captures = Connection("syslog", tuple(written.items()))
    source = Definition("s", Kind.SOURCE, "", where, "", captures=captures)
    [stream] = definitions_of(source, capture_of("syslog").look("s", options))
    return Task("s", "s.1", stream, options)


class Running:
    """A source at work."""

    def __init__(self, **written):
        self.port = free_port()
        self.sender = Sender()
        log = Log(SimpleNamespace(max_record_bytes=1_000_000), self.sender)
        self.source = Syslog(task(listen=f"127.0.0.1:{self.port}", **written), log)

    def __enter__(self):
        self.source.start()
        eventually(lambda: self.source.told.state == "running")
        return self

    def __exit__(self, *_):
        self.sender.open.set()
        self.source.stop()

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def datagram(self, data):
        with socket.socket(type=socket.SOCK_DGRAM) as client:
            client.sendto(data, ("127.0.0.1", self.port))


@pytest.fixture
def at_once(monkeypatch):
    """Retries that do not wait for seconds."""
    monkeypatch.setattr(module, "_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(module, "_WATCH_SECONDS", 0.01)


def test_messages_come_by_both_ways_in_their_order():
    with Running() as running:
        with running.connect() as client:
            client.sendall(b"".join(MESSAGE + b"%d\n" % n for n in range(3000)))
        eventually(lambda: len(running.sender.messages) == 3000)
        assert running.sender.messages == [str(n) for n in range(3000)]
        running.datagram(MESSAGE + b"by udp\n")
        eventually(lambda: running.sender.messages[-1] == "by udp")
    topic, record = running.sender.records[-1]
    assert (topic, record.key) == ("s_events", b"h")
    row = json.loads(record.value)
    assert row["peer"].startswith("127.0.0.1:")
    assert (running.source.told.records, running.source.told.quarantined) == (3001, 0)


def test_what_is_no_message_is_kept_whole_in_the_quarantine():
    with Running(protocols="udp") as running:
        running.datagram(b"caf\xe9, not syslog")
        running.datagram(b"<13>Oct 11 22:14:15 caf\xe9")
        eventually(lambda: running.source.told.quarantined == 2)
    assert [topic for topic, _ in running.sender.records] == [QUARANTINE_TOPIC] * 2
    assert [r.value for _, r in running.sender.records] == [
        b"caf\xe9, not syslog",
        b"<13>Oct 11 22:14:15 caf\xe9",
    ]
    facts = dict(running.sender.records[0][1].headers)
    assert (facts["stage"], facts["code"], facts["object"]) == (
        b"source",
        b"NOT_SYSLOG",
        b"s_events",
    )
    assert facts["original.peer"].startswith(b"127.0.0.1:")


def test_while_the_log_is_away_nothing_is_lost(at_once):
    with Running(protocols="tcp") as running:
        running.sender.away = True
        with running.connect() as client:
            client.sendall(MESSAGE + b"one\n" + MESSAGE + b"two\n")
        eventually(lambda: running.source.told.state == "failed")
        assert running.source.told.error.code == "LOG_UNREACHABLE"
        running.sender.away = False
        eventually(lambda: running.source.told.state == "running")
    assert running.sender.messages == ["one", "two"]
    assert running.source.told.last_error.code == "LOG_UNREACHABLE"


def test_a_sender_waits_when_there_is_no_room():
    running = Running(protocols="tcp")
    running.source._intake = intake = Intake(most_bytes=1_000_000)
    running.source._connections._intake = intake
    running.sender.open.clear()
    line = MESSAGE + b"x" * 1000 + b"\n"
    sent = 0
    with running, running.connect() as client:
        client.settimeout(0.5)
        try:
            while sent < 500_000:  # 500 MB would not fit
                sent += client.send(line * 1000) // len(line)
        except TimeoutError:
            pass
        assert sent < 100_000
        assert len(intake) < 5_000
        running.sender.open.set()
        client.close()
        eventually(lambda: running.source.told.records >= sent)


def test_a_stop_hands_over_what_was_read():
    with Running() as running:
        running.sender.open.clear()
        with running.connect() as client:
            client.sendall(b"".join(MESSAGE + b"%d\n" % n for n in range(100)))
        running.datagram(MESSAGE + b"udp")
        eventually(lambda: running.sender.calls)
        assert running.source.told.records == 0
    assert len(running.sender.messages) >= 1
    assert running.source.told.records == len(running.sender.messages)
    assert running.source.told.lost == 0
    with pytest.raises(ConnectionRefusedError):
        running.connect()
    running.source.stop()  # once more


def test_a_port_that_others_have_is_tried_again(at_once):
    running = Running()
    with socket.socket() as other:
        other.bind(("127.0.0.1", running.port))
        other.listen()
        running.source.start()
        eventually(lambda: running.source.told.state == "failed")
        assert running.source.told.error.code == "LISTEN_FAILED"
    eventually(lambda: running.source.told.state == "running")
    running.source.stop()


def test_datagrams_that_the_system_dropped_are_told_loudly(at_once, caplog):
    running = Running(protocols="udp")
    with running:
        running.source._datagrams.dropped = lambda: 7
        eventually(lambda: running.source.told.lost == 7)
        assert running.source.told.error.code == "LINES_LOST"
        assert running.source.told.state == "running"
    assert any(record.levelname == "ERROR" for record in caplog.records)


@pytest.mark.skipif(not Path("/proc/net/udp").exists(), reason="only Linux counts them")
def test_the_system_counts_what_it_drops():
    running = Running(protocols="udp")
    running.source._intake._most_lines = 0  # full from the first one on
    running.sender.open.clear()
    with running:
        found = running.source._datagrams
        for _ in range(2000):
            running.datagram(b"x" * 9000)
        eventually(lambda: found.dropped() > 0)


@pytest.mark.parametrize(
    ("written", "option"),
    [
        ({"listen": "5514"}, "listen"),
        ({"listen": "127.0.0.1:0"}, "listen"),
        ({"listen": "127.0.0.1:70000"}, "listen"),
        ({"listen": "::1:514"}, "listen"),
        ({"protocols": "tpc"}, "protocols"),
        ({"timezone": "Mars/Olympus"}, "timezone"),
        ({"charset": "ebcdic"}, "charset"),
        ({"stream": "a b"}, "stream"),
    ],
)
def test_options_that_do_not_fit_are_refused(written, option):
    with pytest.raises(MainstemError) as caught:
        task(**written)
    assert caught.value.params["option"] == option


def test_an_address_of_the_newer_kind():
    if not socket.has_ipv6:
        pytest.skip("there is no IPv6 here")
    running = Running()
    running.source._host = "::1"
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("there is no IPv6 here")
    with running, socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as client:
        client.sendto(MESSAGE + b"six", ("::1", running.port))
        eventually(lambda: running.sender.messages == ["six"])
    assert json.loads(running.sender.records[0][1].value)["peer"].startswith("[::1]:")
