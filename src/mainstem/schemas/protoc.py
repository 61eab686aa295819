"""Compiles .proto text in this process, with nothing but the files that are handed over.

The compiler reads files, so they are put into a folder that is gone afterwards. Its results come
as Python modules, of which the serialized descriptor is taken; nothing of them is run.
"""

from __future__ import annotations

import ast
import re
import tempfile
import threading
import warnings
from importlib.resources import files
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_tools import _protoc_compiler

from mainstem.errors import MainstemError
from mainstem.schemas.model import SchemaType
from mainstem.schemas.protos import builtin
from mainstem.schemas.text import malformed, too_deep

MAIN = "-schema.proto"
"""The name of the schema itself, which no import can have."""
MAX_BRACES = 48
"""The compiler stops at 32 messages, but for groups it needs time by the square of the depth."""

_TOKEN = re.compile(
    r"""//[^\n]*+|/\*.*?(?:\*/|\Z)|"(?:[^"\\\n]++|\\.)*+"?|'(?:[^'\\\n]++|\\.)*+'?"""
    r"""|(?P<open>\{)|(?P<close>\})|(?P<word>\w++)""",
    re.DOTALL,
)
_IMPORT = re.compile(r"""\bimport\s+(?:public\s+|weak\s+|option\s+)?["']([^"'\n]{1,500})["']""")
_NAME = re.compile(r"(?:[\w.@+ -]{1,200}/)*+[\w.@+ -]{1,200}\Z", re.ASCII)
_SERIALIZED = re.compile(rb"\.AddSerializedFile\((b'(?:[^'\\]++|\\.)*+')\)", re.DOTALL)
# the filter of warnings is the whole process's
_LOCK = threading.Lock()


def compile_proto(
    text: str, references: dict[str, str]
) -> tuple[FileDescriptorProto, tuple[FileDescriptorProto, ...]]:
    """The descriptors of a text and of what it imports, each behind what it needs."""
    with tempfile.TemporaryDirectory(prefix="mainstem-protoc-") as name:
        folder = Path(name)
        for reference, other in references.items():
            _write(folder, reference, other)
        todo = [text, *references.values()]
        while todo:
            for found in imports_of(todo.pop()):
                builtin_text = None if found in references else builtin(found)
                if builtin_text is not None and not (folder / found).exists():
                    _write(folder, found, builtin_text)
                    todo.append(builtin_text)
        shift = _write(folder, MAIN, text)
        modules = _compile(folder, shift)
    descriptors = [_descriptor(module) for _, module in modules]
    [main] = [item for item in descriptors if item.name == MAIN]
    return main, tuple(item for item in descriptors if item.name != MAIN)


def imports_of(text: str) -> list[str]:
    """What a text seems to import; one too many does no harm."""
    return _IMPORT.findall(text)


def _compile(folder: Path, shift: int) -> list[tuple[bytes, bytes]]:
    known = str(files("grpc_tools") / "_proto")
    with _LOCK, warnings.catch_warnings():
        # such as an import that nothing uses
        warnings.simplefilter("ignore")
        try:
            modules: list[tuple[bytes, bytes]] = _protoc_compiler.get_protos(
                MAIN.encode(), [str(folder).encode(), known.encode()]
            )
        except _protoc_compiler.ProtocErrors as errors:
            raise _translate(errors.args[0], shift) from None
    return modules


def _translate(errors: list[_protoc_compiler.ProtocError], shift: int) -> MainstemError:
    for error in errors:
        if error.line < 0 and error.message in (b"File not found.",):
            return MainstemError(
                "SCHEMA_REFERENCE_UNKNOWN",
                name=error.filename.decode(errors="replace")[:200],
                problem="it is imported, and the references do not name it",
            )
    error = errors[0]
    file, problem = error.filename.decode(errors="replace"), error.message.decode(errors="replace")
    if "recursively imports itself" in problem:
        way = problem.partition(": ")[2].replace(MAIN, "the schema")
        return MainstemError("SCHEMA_REFERENCE_CIRCLE", path=way)
    if error.line < 0:
        where = file if file != MAIN else "its text"
    else:
        column = error.column + 1 - (shift if error.line == 0 else 0)
        where = f"line {error.line + 1}, column {max(column, 1)}"
        where = where if file == MAIN else f"{where} of {file}"
    return malformed(SchemaType.PROTOBUF, where, problem.replace(MAIN, "the schema")[:500])


def _write(folder: Path, name: str, text: str) -> int:
    """Puts a file into the folder; how many characters were put before its first line."""
    prefix = _syntax(text)
    path = folder / name
    try:
        if len(name) > 500 or not _NAME.match(name) or {".", ".."} & {*name.split("/")}:
            raise NotADirectoryError
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(prefix + text, "utf-8", newline="")
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        raise MainstemError(
            "SCHEMA_REFERENCE_UNKNOWN", name=name[:200], problem="no import can have this path"
        ) from None
    return len(prefix)


def _syntax(text: str) -> str:
    """What must stand before a text that does not say its syntax; refuses one nested too deeply."""
    depth, first = 0, None
    for token in _TOKEN.finditer(text):
        match token.lastgroup:
            case "open":
                depth += 1
                if depth > MAX_BRACES:
                    raise too_deep(MAX_BRACES)
            case "close":
                depth -= 1
            case "word" if first is None:
                first = token[0]
    # the compiler would complain on standard error
    return "" if first in ("syntax", "edition") else 'syntax = "proto2"; '


def _descriptor(module: bytes) -> FileDescriptorProto:
    found = _SERIALIZED.search(module)
    assert found is not None
    return FileDescriptorProto.FromString(ast.literal_eval(found[1].decode("ascii")))
