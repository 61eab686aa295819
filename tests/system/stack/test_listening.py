"""Sources that gateway and engine run: what comes to them is in their stream, or in quarantine."""

from __future__ import annotations

import hmac
import json
import shutil
import signal
import socket
import subprocess
from contextlib import contextmanager

import httpx2
import pytest

from mainstem.testing.ports import free_port
from mainstem.testing.waiting import eventually

RSYSLOG = """
module(load="imtcp")
input(type="imtcp" port="{inlet}" address="127.0.0.1")
global(workDirectory="{folder}")
action(type="omfwd" target="127.0.0.1" port="{port}" protocol="{protocol}"
       template="{template}" TCP_Framing="{framing}")
"""


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


def written(shop, topic, least):
    """The rows of a topic, once there are so many: a commit shows a moment after it was told."""
    eventually(lambda: len(shop.values(topic)) >= least, what=f"{least} records of {topic}")
    return shop.values(topic)


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
    rows = {row["message"]: row for row in written(shop, "lines_events", 3)}
    assert rows.keys() == {"by udp", "by line", "counted\nin two lines"}
    assert rows["by udp"]["host"] == "mymachine"
    assert rows["by udp"]["severity"] == "crit"
    assert rows["by line"]["at"] == "2026-11-16T05:00:00Z"
    assert rows["counted\nin two lines"]["structured"] == {"a@1": {"k": "v"}}
    # what is no message is held whole, with the reason and its sender
    asked = ("quarantine", "list", "--stream", "lines_events", "-o", "jsonl")
    eventually(lambda: len(shop.cli(*asked).ok().jsonl) >= 2)
    shown = shop.cli(*asked).ok().jsonl
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
    shop.do("PAUSE lines")
    wait_for(shop, "lines", state="paused")
    with pytest.raises(ConnectionRefusedError):
        send_tcp(lines, b"<13>a: nobody hears it\n")
    shop.do("RESUME lines")
    wait_for(shop, "lines", state="running")
    with socket.socket() as taken:  # a port that others have
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        other = f"127.0.0.1:{taken.getsockname()[1]}"
        shop.do(
            "CREATE OR REPLACE SOURCE lines WITH "
            f"(connector = 'syslog', protocols = 'tcp', listen = '{other}')"
        )
        told = eventually(lambda: connector(shop, "lines").get("error"))
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
        process.wait(120)


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
    rows = written(shop, "lines_events", 150)
    assert len(rows) == 150
    assert {row["app"] for row in rows} == {"sshd"}
    assert {(row["host"], row["procid"]) for row in rows} == {
        (f"web{n}", str(n)) for n in range(50)
    }
    assert {row["facility"] for row in rows} == {"auth"}


SECRET = "It's a secret to everybody"


def signed(body: bytes, **headers: str) -> dict:
    signature = hmac.new(SECRET.encode(), body, "sha256").hexdigest()
    return {"content": body, "headers": {"X-Hub-Signature-256": f"sha256={signature}", **headers}}


def kill_gateway(shop):
    """The gateway dies, and is started again by the stack."""
    before = shop.up.server("gateway")
    before.send_signal(signal.SIGKILL)

    def back():
        try:
            ready = shop.http.get("/v1/connectors").status_code == 200
            return ready and shop.up.server("gateway").pid != before.pid
        except (OSError, AssertionError, httpx2.HTTPError):
            return False

    eventually(back)


def test_webhook_with_signature_and_id(shop):
    (shop.folder / "secrets").mkdir(exist_ok=True)
    (shop.folder / "secrets" / "hook").write_text(SECRET + "\n")
    shop.do(
        "CREATE SOURCE github WITH (connector = 'webhook', signature = 'github',"
        " secret = '${file:secrets/hook}', id = 'header:X-GitHub-Delivery',"
        " columns = 'action STRING, number BIGINT, sender STRUCT<login: STRING>')"
    )
    try:
        wait_for(shop, "github", state="running")
        body = b'{"action":"opened","number":1,"sender":{"login":"ann","id":5},"more":{}}'
        one = signed(body, **{"X-GitHub-Delivery": "d1"})
        answer = shop.http.post("/v1/hooks/github", **one)
        assert (answer.status_code, answer.json()) == (200, {"written": 1, "duplicate": False})
        # what was answered is in the log, and is known after a crash, too
        row = {"action": "opened", "number": 1, "sender": {"login": "ann"}}
        assert written(shop, "github_events", 1) == [row]
        kill_gateway(shop)
        wait_for(shop, "github", state="running")
        assert shop.http.post("/v1/hooks/github", **one).json()["duplicate"]
        several = signed(
            json.dumps([{"number": 2}, {"number": 3}]).encode(), **{"X-GitHub-Delivery": "d2"}
        )
        assert shop.http.post("/v1/hooks/github", **several).json()["written"] == 2
        # what does not fit is refused whole, with the place and the reason
        unsigned = {**one, "content": body + b" "}
        shop.refused("SIGNATURE_INVALID", "POST", "/v1/hooks/github", **unsigned)
        wrong = signed(b'[{"number":4},{"number":"five"}]', **{"X-GitHub-Delivery": "d3"})
        problem = shop.refused("INVALID_RECORD", "POST", "/v1/hooks/github", **wrong)
        assert (problem["status"], problem["index"], problem["path"]) == (422, 1, "number")
        large = signed(b" " * 1_000_001)
        assert shop.refused("BODY_TOO_LARGE", "POST", "/v1/hooks/github", **large)["status"] == 413
        shop.refused("HOOK_UNKNOWN", "POST", "/v1/hooks/gitlab", content=b"{}")
        numbers = [row["number"] for row in written(shop, "github_events", 3)]
        assert sorted(numbers) == [1, 2, 3]
        assert SECRET not in shop.http.get("/v1/connectors").text
        shop.do("PAUSE github")
        wait_for(shop, "github", state="paused")
        shop.refused("SOURCE_NOT_READY", "POST", "/v1/hooks/github", **one)
    finally:
        shop.do("DROP SOURCE github")
    eventually(lambda: shop.http.post("/v1/hooks/github", content=b"{}").status_code == 404)


def test_a_generator_goes_on_where_it_was(shop):
    shop.do(
        "CREATE SOURCE load WITH (connector = 'generator', rate = 2000, count = 5000, key = 'user',"
        " partitions = 3, columns = 'id BIGINT AS sequence(), user STRING AS"
        ' numbered("user-", 10), amount DOUBLE AS uniform(1, 100), at TIMESTAMP\', event_time ='
        " 'at')"
    )
    try:
        eventually(lambda: connector(shop, "load").get("records", 0) > 500)
        kill_gateway(shop)
        eventually(lambda: connector(shop, "load").get("records", 0) > 0)
        shop.do("PAUSE load")
        wait_for(shop, "load", state="paused")
        paused = len(shop.values("load_events"))
        shop.do("RESUME load")
        wait_for(shop, "load", state="finished")
        rows = written(shop, "load_events", 5000)
        # each once, though it was killed and paused
        assert sorted(row["id"] for row in rows) == list(range(1, 5001))
        assert paused <= 5000
        assert {row["user"] for row in rows} == {f"user-{n}" for n in range(1, 11)}
    finally:
        shop.do("DROP SOURCE load")


def test_files_are_read_by_the_engine(shop):
    folder = shop.folder / "data"
    folder.mkdir(exist_ok=True)
    options = "connector = 'files', folder = 'data', format = 'jsonl', settle = '0 seconds'"
    columns = "columns = 'id BIGINT', interval = '1 second'"
    elsewhere = options.replace("'data'", "'.mainstem'")
    refused = shop.sql(f"CREATE SOURCE found WITH ({elsewhere}, {columns})")
    refused.failed("SOURCE_FOLDER", exit_code=3)
    shop.do(f"CREATE SOURCE found WITH ({options}, {columns})")
    (folder / "a.jsonl").write_text('{"id": 1}\n{"id": 2}\n{broken\n')
    told = wait_for(shop, "found", state="running", records=2, quarantined=1, error=None)
    assert (told["runs_in"], told["stream"]) == ("engine", "found_events")
    assert [row["id"] for row in written(shop, "found_events", 2)] == [1, 2]
    shop.do("PAUSE found")
    wait_for(shop, "found", state="paused")
    (folder / "b.jsonl").write_text('{"id": 3}\n')
    assert ["found", "files", "found_events", "paused", None] in shop.rows("SHOW SOURCES")
    shop.do("RESUME found")
    assert sorted(row["id"] for row in written(shop, "found_events", 3)) == [1, 2, 3]
    asked = ("quarantine", "list", "--stream", "found_events", "-o", "jsonl")
    held = eventually(lambda: shop.cli(*asked).ok().jsonl, what="the broken line")
    assert [(one["value"], one["stage"]) for one in held] == [("{broken", "source")]
    assert "a.jsonl, line 3" in held[0]["cause"]
    shop.cli("quarantine", "discard", "--stream", "found_events", "--yes").ok()
    shop.do("DROP SOURCE found")
    eventually(lambda: connector(shop, "found")["state"] == "absent")
