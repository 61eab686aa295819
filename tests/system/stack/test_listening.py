"""Sources that the gateway runs itself: what comes to them is in their stream, or in quarantine."""

from __future__ import annotations

import shutil
import socket
import subprocess
from contextlib import contextmanager

import pytest

from mainstem.testing.waiting import eventually

RSYSLOG = """
module(load="imtcp")
input(type="imtcp" port="{inlet}" address="127.0.0.1")
global(workDirectory="{folder}")
action(type="omfwd" target="127.0.0.1" port="{port}" protocol="{protocol}"
       template="{template}" TCP_Framing="{framing}")
"""


def free_port() -> int:
    """A port that nobody has, neither by TCP nor by UDP."""
    while True:
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            tcp.bind(("127.0.0.1", 0))
            port: int = tcp.getsockname()[1]
            try:
                udp.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def connector(shop, name):
    """What is said of a source."""
    found = shop.http.get("/v1/connectors").json()["connectors"]
    return next((one for one in found if one["name"] == name), {"state": "absent"})


def wait_for(shop, name, **expected):
    """Wait until this is said of a source."""

    def there():
        told = connector(shop, name)
        return told if expected.items() <= told.items() else None

    return eventually(there, what=f"{name} {expected}")


@pytest.fixture
def lines(shop):
    """A source of syslog messages, and its port."""
    port = free_port()
    shop.do(f"CREATE SOURCE lines WITH (connector = 'syslog', listen = '127.0.0.1:{port}')")
    wait_for(shop, "lines", state="running")
    yield port
    shop.cli("quarantine", "discard", "--stream", "lines_events", "--yes").ok()
    shop.do("DROP SOURCE lines")
    eventually(lambda: connector(shop, "lines")["state"] == "absent")


def send_tcp(port: int, data: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(data)


def send_udp(port: int, *datagrams: bytes) -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as client:
        for data in datagrams:
            client.sendto(data, ("127.0.0.1", port))


def test_syslog_from_all_kinds_of_senders(shop, lines):
    send_udp(lines, b"<34>Oct 11 22:14:15 mymachine su: by udp", b"no syslog at all\n")
    send_tcp(lines, b"<13>1 2026-11-16T05:00:00Z h app 1 ID - by line\nbad \xff line\n")
    counted = b'<13>1 - - - - - [a@1 k="v"] counted\nin two lines'
    send_tcp(lines, b"%d %s" % (len(counted), counted))
    told = wait_for(shop, "lines", records=3, quarantined=2, lost=0, error=None)
    assert told["stream"] == "lines_events"
    rows = {row["message"]: row for row in shop.values("lines_events")}
    assert rows.keys() == {"by udp", "by line", "counted\nin two lines"}
    assert rows["by udp"]["host"] == "mymachine"
    assert rows["by udp"]["severity"] == "crit"
    assert rows["by line"]["at"] == "2026-11-16T05:00:00Z"
    assert rows["counted\nin two lines"]["structured"] == {"a@1": {"k": "v"}}
    # what is no message is held whole, with the reason and its sender
    shown = shop.cli("quarantine", "list", "--stream", "lines_events", "-o", "jsonl").ok().jsonl
    held = {one["value"]: one for one in shown}
    assert held["no syslog at all"]["stage"] == "source"
    assert "priority" in held["no syslog at all"]["cause"]
    assert any("utf-8" in one["cause"] for one in shown)
    # the stream is as any other, but nobody else writes to it
    assert shop.rows("SELECT app, procid FROM lines_events WHERE message = 'by line'") == [
        ["app", "1"]
    ]
    shop.refused(
        "OBJECT_OF_SOURCE", "POST", "/v1/streams/lines_events/records", json={"records": [{}]}
    )
    assert shop.rows("SHOW SOURCES")[0][:2] == ["lines", "syslog"]


def test_a_paused_source_does_not_listen(shop, lines):
    shop.do("PAUSE SOURCE lines")
    wait_for(shop, "lines", state="paused")
    with pytest.raises(ConnectionRefusedError):
        send_tcp(lines, b"<13>a: nobody hears it\n")
    shop.do("RESUME SOURCE lines")
    wait_for(shop, "lines", state="running")
    with socket.socket() as taken:  # a port that others have
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        other = f"127.0.0.1:{taken.getsockname()[1]}"
        shop.do(
            "CREATE OR REPLACE SOURCE lines WITH "
            f"(connector = 'syslog', protocols = 'tcp', listen = '{other}')"
        )
        told = eventually(lambda: connector(shop, "lines")["error"])
        assert told["title"] == "LISTEN_FAILED"
    wait_for(shop, "lines", state="running", error=None)


@contextmanager
def rsyslog(folder, port, protocol="tcp", framing="traditional", template="RSYSLOG_ForwardFormat"):
    """A rsyslogd of our own that forwards to the port; its own inlet."""
    inlet = free_port()
    config = folder / f"{protocol}-{framing}.conf"
    config.write_text(
        RSYSLOG.format(
            inlet=inlet,
            folder=folder,
            port=port,
            protocol=protocol,
            template=template,
            framing=framing,
        )
    )
    program = shutil.which("rsyslogd", path="/usr/sbin:/usr/bin:/usr/local/sbin")
    process = subprocess.Popen(
        [program, "-n", "-f", str(config), "-i", str(folder / f"{config.stem}.pid")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield inlet
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.skipif(
    shutil.which("rsyslogd", path="/usr/sbin:/usr/bin:/usr/local/sbin") is None,
    reason="rsyslog is not installed (scripts/system-packages)",
)
def test_a_real_rsyslog_forwards(shop, lines, tmp_path):
    kinds = [
        ("tcp", "traditional", "RSYSLOG_ForwardFormat"),
        ("tcp", "octet-counted", "RSYSLOG_SyslogProtocol23Format"),
        ("udp", "traditional", "RSYSLOG_TraditionalForwardFormat"),
    ]
    sent = 0
    for protocol, framing, template in kinds:
        with rsyslog(tmp_path, lines, protocol, framing, template) as inlet:

            def accepted(inlet=inlet):
                with socket.socket() as client:
                    return client.connect_ex(("127.0.0.1", inlet)) == 0

            eventually(accepted)
            text = "".join(
                f"<38>Nov 16 05:00:{n:02} web{n} sshd[{n}]: Failed password {framing} {protocol}\n"
                for n in range(50)
            )
            send_tcp(inlet, text.encode())
            sent += 50
            wait_for(shop, "lines", records=sent)
    rows = shop.values("lines_events")
    assert len(rows) == 150
    assert {row["app"] for row in rows} == {"sshd"}
    assert {(row["host"], row["procid"]) for row in rows} == {
        (f"web{n}", str(n)) for n in range(50)
    }
    assert {row["facility"] for row in rows} == {"auth"}
