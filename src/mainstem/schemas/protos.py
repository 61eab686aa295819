"""The .proto files that every Protobuf schema may import without naming them as references."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

_HOMES = {
    # prefix of the import -> the package, and the folder in it, that has the files
    "google/protobuf/": ("grpc_tools", "_proto/google/protobuf"),
    "google/type/": ("google", "type"),
    "confluent/": ("mainstem", "schemas/confluent"),
}


@lru_cache(maxsize=256)
def builtin(name: str) -> str | None:
    """The text of a file that clients take for granted and never register, or None."""
    for prefix, (package, folder) in _HOMES.items():
        rest = name.removeprefix(prefix)
        if rest != name and rest.endswith(".proto") and ".." not in rest:
            file = files(package)
            for part in (*folder.split("/"), *rest.split("/")):
                file = file.joinpath(part)
            return file.read_text("utf-8") if file.is_file() else None
    return None
