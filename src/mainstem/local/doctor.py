"""What is wrong with this machine or this project's stack, and how to mend it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import psutil

from mainstem.config import Project
from mainstem.connect.client import ConnectClient
from mainstem.connect.local_worker import wanted_plugins, worker_word
from mainstem.errors import MainstemError, catalogue
from mainstem.local.connect import FOLDER, USER, rest_password
from mainstem.local.disk import free_megabytes, needed_megabytes
from mainstem.local.given import broker_problem, postgres_address, postgres_problem
from mainstem.local.jars import cache_folder, missing, offline_folder, repository_url
from mainstem.local.jars_lock import PLUGINS, Group, Jar
from mainstem.local.java import find_java
from mainstem.local.ports import LOOPBACK, is_free
from mainstem.local.run_file import RunInfo, running
from mainstem.local.services import READY_FILE
from mainstem.log.connection import Connection

OLDEST_PYTHON = (3, 11)
LEAST_MEMORY_MB = 2000
_TIMEOUT = 5.0


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str
    hint: str = ""
    """What to do, when it is not ok."""


def diagnose(project: Project | None) -> list[Check]:
    """Look at the machine, and at the project's stack when there is a project."""
    return [*_machine(project), *(_stack(project) if project else ())]


def _machine(project: Project | None) -> Iterator[Check]:
    yield _python()
    yield _java()
    yield _jars(project)
    yield _disk(project.folder if project else Path.cwd())
    yield _memory()


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    wanted = ".".join(map(str, OLDEST_PYTHON))
    return Check(
        "python",
        sys.version_info >= OLDEST_PYTHON,
        f"{version} at {sys.executable}",
        f"Install Python {wanted} or newer.",
    )


def _java() -> Check:
    try:
        java = find_java()
    except MainstemError as error:
        return Check("java", False, error.message, error.hint)
    return Check("java", True, f"{java.version} at {java.home}")


def _jars(project: Project | None) -> Check:
    wanted: list[Group] = ["broker", "spark"]
    plugins = wanted_plugins(project.state_folder / FOLDER) if project else ()
    if plugins:
        wanted += ["connect", *(plugin for plugin in PLUGINS if plugin in plugins)]
    absent = [jar for group in wanted for jar in missing(group)]
    offline = offline_folder()
    if not absent:
        return Check("jars", True, f"all in {offline or cache_folder()}")
    names = _listed(absent)
    hint = catalogue()["JAR_UNAVAILABLE"].hint
    if offline:
        return Check("jars", False, f"missing or damaged in {offline}: {names}", hint)
    try:
        url = f"{repository_url().rstrip('/')}/{absent[0].path}"
        answer = httpx2.head(url, timeout=_TIMEOUT, follow_redirects=True)
        answer.raise_for_status()
    except httpx2.HTTPError as error:
        problem = str(error) or type(error).__name__
        return Check("jars", False, f"missing: {names}; the repository fails: {problem}", hint)
    return Check("jars", True, f"{len(absent)} will be fetched at the next start")


def _listed(absent: list[Jar]) -> str:
    names = ", ".join(jar.file_name for jar in absent[:3])
    return names if len(absent) <= 3 else f"{names} and {len(absent) - 3} more"


def _disk(folder: Path) -> Check:
    free, needed = free_megabytes(folder), needed_megabytes()
    detail = f"{free} MB free" if free >= needed else f"{free} MB free, {needed} MB are needed"
    return Check("disk", free >= needed, detail, catalogue()["DISK_FULL"].hint)


def _memory() -> Check:
    free = psutil.virtual_memory().available // 1_000_000
    return Check(
        "memory",
        free >= LEAST_MEMORY_MB,
        f"{free} MB available",
        f"The stack works best with {LEAST_MEMORY_MB} MB or more: end other programs.",
    )


def _stack(project: Project) -> Iterator[Check]:
    run = running(project)
    cluster = project.settings.profile == "cluster"
    if run is None:
        yield from _ports(project)
        yield Check("stack", True, "not running; `mainstem up` starts it")
    else:
        yield Check("stack", True, f"running as process {run.pid} since {run.started_at}")
    if run is not None or cluster:
        yield _broker(project, run)
        yield _postgres(project, run)
        yield from _connect(project, run)
    if run is not None:
        yield _gateway(run)
        yield _engine(project)


def _ports(project: Project) -> Iterator[Check]:
    settings = project.settings
    for what, port, host in (
        ("broker", settings.kafka.port, LOOPBACK),
        ("postgres", settings.postgres.port, LOOPBACK),
        ("gateway", settings.gateway.port, settings.gateway.host),
        ("connect", settings.connect.port, LOOPBACK),
    ):
        if port:
            free = is_free(port, host)
            state = "free" if free else "taken by another program"
            hint = catalogue()["PORT_TAKEN"].hint
            yield Check(f"port of {what}", free, f"{port} is {state}", hint)


def _broker(project: Project, run: RunInfo | None) -> Check:
    connection = Connection.from_settings(
        project.settings.kafka, run.bootstrap_servers if run else ""
    )
    problem = broker_problem(connection, _TIMEOUT)
    if problem is not None:
        return Check("broker", False, problem.message, problem.hint)
    return Check("broker", True, f"answers at {connection.servers}")


def _postgres(project: Project, run: RunInfo | None) -> Check:
    if run is not None and run.postgres is not None:
        host, port = run.postgres.host, run.postgres.port
    else:
        host, port = postgres_address(project.settings)
    problem = postgres_problem(host, port, _TIMEOUT)
    if problem is not None:
        hint = catalogue()["VIEW_STORE_UNREACHABLE"].hint
        return Check("postgres", False, problem, hint)
    return Check("postgres", True, f"listens at {host}:{port}")


def _connect(project: Project, run: RunInfo | None) -> Iterator[Check]:
    """Kafka Connect: the cluster that is given, or the worker of a stack that needs one."""
    given, folder = project.settings.connect, project.state_folder / FOLDER
    if given.url:
        client = ConnectClient(
            given.url, given.user, given.password.get_secret_value(), timeout=_TIMEOUT
        )
    elif run is not None and run.connect_url and wanted_plugins(folder):
        word = worker_word(folder)
        if word.problem is not None:
            yield Check("connect", False, word.problem, catalogue()["CONNECT_UNREACHABLE"].hint)
            return
        client = ConnectClient(run.connect_url, USER, rest_password(folder), timeout=_TIMEOUT)
    else:
        return
    try:
        yield Check("connect", True, f"version {client.version()} at {client.url}")
    except MainstemError as error:
        yield Check("connect", False, error.message, error.hint)
    finally:
        client.close()


def _gateway(run: RunInfo) -> Check:
    hint = "Its log is .mainstem/logs/gateway.log; the stack restarts it by itself."
    try:
        answer = httpx2.get(f"{run.gateway_url}/readyz", timeout=_TIMEOUT, trust_env=False)
    except httpx2.HTTPError:
        return Check("gateway", False, f"does not answer at {run.gateway_url}", hint)
    if answer.status_code != httpx2.codes.OK:
        return Check("gateway", False, f"says that it is not ready ({answer.status_code})", hint)
    return Check("gateway", True, f"ready at {run.gateway_url}")


def _engine(project: Project) -> Check:
    hint = "Its log is .mainstem/logs/engine.log; the stack restarts it by itself."
    ready = (project.state_folder / READY_FILE).exists()
    return Check("engine", ready, "ready" if ready else "not ready", hint)
