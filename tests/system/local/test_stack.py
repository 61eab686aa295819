"""The real broker and the real PostgreSQL, started, killed and started again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from mainstem.config import Project, load_project
from mainstem.errors import MainstemError
from mainstem.local import postgres_place
from mainstem.local.class_archive import broker_archive
from mainstem.local.doctor import diagnose
from mainstem.local.jars import jars
from mainstem.local.java import find_java
from mainstem.local.postgres import OWNER, READER, remove_data
from mainstem.local.postgres_place import find_place
from mainstem.local.run_file import RunInfo, run_path, running
from mainstem.local.stack import Stack
from mainstem.log.admin import Admin, TopicSpec
from mainstem.log.connection import Connection
from mainstem.log.consumer import read_range
from mainstem.log.producer import Outgoing, Producer
from mainstem.testing.waiting import eventually

pytestmark = pytest.mark.kafka
PARTS = ("broker", "postgres")
SUPERVISOR = """
import sys
from pathlib import Path
from mainstem.config import load_project
from mainstem.local.stack import Stack
with Stack(load_project(Path(sys.argv[1])), ("broker", "postgres")) as stack:
    print("up", stack.pid("broker"), stack.pid("postgres"), flush=True)
    stack.wait()
"""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    (tmp_path / "mainstem.toml").write_text('name = "shop"\n')
    project = load_project(tmp_path)
    yield project
    remove_data(project.state_folder)


def psql(stack: Stack, role: str, sql: str) -> str:
    """What psql prints; AssertionError with its words when the server refuses."""
    url = stack.endpoints.postgres_url if role == OWNER else stack.endpoints.postgres_reader_url
    program = find_place(stack.project.state_folder).programs / "psql"
    ran = subprocess.run(
        [program, "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", url.get_secret_value(), "-c", sql],
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode != 0:
        raise AssertionError(ran.stderr)
    return ran.stdout.strip()


def records(servers: str, topic: str) -> list[bytes | None]:
    connection = Connection(servers)
    admin = Admin(connection)
    begin, end = admin.begin_offsets(topic), admin.end_offsets(topic)
    admin.close()
    return [r.value for batch in read_range(connection, topic, begin, end) for r in batch]


def listening(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def write(servers: str, topic: str, values: list[bytes]) -> None:
    connection = Connection(servers)
    admin = Admin(connection)
    admin.ensure_topic(TopicSpec(topic, 1, 1, {}))
    admin.close()
    producer = Producer(connection)
    producer.send(topic, [Outgoing(None, value) for value in values])
    producer.close()


def test_data_survives_a_restart_and_addresses_stay(project):
    with Stack(project, PARTS) as stack:
        first = stack.endpoints
        write(first.bootstrap_servers, "kept", [b"one", b"two"])
        psql(stack, OWNER, "CREATE TABLE kept AS SELECT 42 AS answer")
        run = running(project)
        assert run is not None and run.pid == os.getpid()
        checks = {check.name: check.ok for check in diagnose(project)}
        assert checks["broker"] and checks["postgres"]
    assert running(project) is None
    assert not run_path(project).exists()
    with Stack(project, PARTS) as stack:
        assert stack.endpoints == first
        assert records(stack.endpoints.bootstrap_servers, "kept") == [b"one", b"two"]
        assert psql(stack, READER, "SELECT answer FROM kept") == "42"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what a process has mapped")
def test_the_broker_has_mapped_the_archive_of_its_classes(servers):
    archive = broker_archive(find_java(), jars("broker"))
    if not archive.exists():
        pytest.skip("there is no archive: `make classes` makes it")
    mapped = psutil.Process(servers.pid("broker")).memory_maps()
    assert str(archive) in {one.path for one in mapped}


def test_roles(project):
    with Stack(project, ("postgres",)) as stack:
        psql(stack, OWNER, "CREATE TABLE t AS SELECT 1 AS a")
        assert psql(stack, READER, "SELECT a FROM t") == "1"
        assert psql(stack, READER, "SHOW statement_timeout") == "30s"
        for forbidden in (
            "INSERT INTO t VALUES (2)",
            "SET default_transaction_read_only = off; INSERT INTO t VALUES (2)",
            "SET default_transaction_read_only = off; CREATE TABLE u (a int)",
            "SET default_transaction_read_only = off; CREATE TEMP TABLE u (a int)",
            "SET default_transaction_read_only = off; SELECT lo_create(0)",
            "SELECT pg_read_file('/etc/passwd')",
            "COPY (SELECT 1) TO PROGRAM 'true'",
        ):
            with pytest.raises(AssertionError, match="ERROR"):
                psql(stack, READER, forbidden)
        with pytest.raises(AssertionError, match="permission denied"):
            psql(stack, OWNER, "COPY (SELECT 1) TO PROGRAM 'true'")
        run = running(project)
        assert run is not None and run.postgres is not None
        program = find_place(project.state_folder).programs / "psql"
        as_a_user = subprocess.run(
            [program, "-X", "-A", "-t", "-w", "-h", run.postgres.host, "-p", str(run.postgres.port),
             "-U", run.postgres.reader, run.postgres.database, "-c", "SELECT a FROM t"],
            env={**os.environ, "PGPASSFILE": run.postgres.passfile},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert as_a_user.stdout.strip() == "1"
        for file in ("secrets.json", "pgpass", "run.json"):
            assert (project.state_folder / file).stat().st_mode & 0o777 == 0o600


def test_passwords_are_in_no_command_line_and_no_log(project):
    with Stack(project, ("postgres",)) as stack:
        words = stack.endpoints.postgres_url.get_secret_value().split(":")[2].split("@")[0]
        lines = [
            " ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])
        ]
    logs = [path.read_text() for path in (project.state_folder / "logs").iterdir()]
    assert len(words) > 20
    assert not any(words in text for text in (*lines, *logs))


def test_lost_passwords_are_made_anew(project):
    with Stack(project, ("postgres",)) as stack:
        psql(stack, OWNER, "CREATE TABLE t AS SELECT 1 AS a")
    (project.state_folder / "secrets.json").unlink()
    with Stack(project, ("postgres",)) as stack:
        assert psql(stack, READER, "SELECT a FROM t") == "1"


@pytest.mark.parametrize("part", PARTS)
def test_killed_server_comes_back_with_its_data(project, part):
    events = []
    with Stack(project, PARTS, events.append) as stack:
        write(stack.endpoints.bootstrap_servers, "kept", [b"one"])
        psql(stack, OWNER, "CREATE TABLE kept AS SELECT 42 AS answer")
        first = stack.pid(part)
        os.kill(first, signal.SIGKILL)
        eventually(lambda: [e for e in events if e.part == part and e.kind == "ready"][1:])
        assert stack.pid(part) != first
        assert stack.restarts[part] == 1
        assert records(stack.endpoints.bootstrap_servers, "kept") == [b"one"]
        assert psql(stack, READER, "SELECT answer FROM kept") == "42"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")
def test_root_whose_folders_let_nobody_pass(project, monkeypatch):
    # as a project and a virtual environment under /root are
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        monkeypatch.setattr(postgres_place, "ROOTS_FOLDER", Path(folder) / "mainstem")
        monkeypatch.setattr(postgres_place, "open_to_others", lambda path: False)
        with Stack(project, ("postgres",)) as stack:
            assert psql(stack, OWNER, "SELECT 42") == "42"
            server = psutil.Process(stack.pid("postgres"))
            assert server.exe().startswith(folder)
            assert server.username() == "nobody"
            assert psql(stack, OWNER, "SHOW server_encoding") == "UTF8"


def start_supervisor(project: Project) -> tuple[subprocess.Popen[str], RunInfo]:
    supervisor = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR, str(project.folder)], stdout=subprocess.PIPE, text=True
    )
    assert supervisor.stdout is not None
    assert supervisor.stdout.readline().startswith("up")
    run = running(project)
    assert run is not None
    return supervisor, run


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_end_of_the_supervisor_ends_everything(project, how):
    supervisor, run = start_supervisor(project)
    everybody = psutil.Process(supervisor.pid).children(recursive=True)
    assert len(everybody) >= 4
    ports = [int(run.bootstrap_servers.split(":")[1]), run.postgres.port]
    assert all(listening(port) for port in ports)
    with pytest.raises(MainstemError) as caught, Stack(project, PARTS):
        pass
    assert caught.value.code == "ALREADY_RUNNING"
    assert caught.value.params["pid"] == str(supervisor.pid)
    supervisor.send_signal(how)
    supervisor.communicate()
    eventually(lambda: not [process for process in everybody if process.is_running()])
    assert not any(listening(port) for port in ports)
    assert running(project) is None


def test_next_stack_waits_for_the_servers_of_a_killed_one(project):
    supervisor, run = start_supervisor(project)
    write(run.bootstrap_servers, "kept", [b"one"])
    supervisor.kill()
    supervisor.communicate()
    with Stack(project, PARTS) as stack:  # at once, while the old servers are still ending
        assert stack.endpoints.bootstrap_servers == run.bootstrap_servers
        assert records(stack.endpoints.bootstrap_servers, "kept") == [b"one"]
