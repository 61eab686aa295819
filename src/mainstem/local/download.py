"""Fetching one verified file over HTTP: resumes a part that is there, retries, checks SHA-256."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path

import httpx2

from mainstem.errors import MainstemError
from mainstem.local.jars_lock import Jar

TRIES = 5
_FIRST_PAUSE = 0.5
_CHUNK = 1 << 16
_RETRY_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})

Advance = Callable[[int], None]
"""Told of every step by the number of bytes; a negative one takes bytes back."""


class _TryAgain(Exception):
    """A failure that another try may mend."""


def sha256_of(path: Path) -> str:
    """Hexadecimal SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_intact(path: Path, jar: Jar) -> bool:
    """Whether the file is there, whole and unchanged."""
    try:
        return path.stat().st_size == jar.size and sha256_of(path) == jar.sha256
    except FileNotFoundError:
        return False


def download(
    client: httpx2.Client,
    base_url: str,
    jar: Jar,
    target: Path,
    advance: Advance,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Bring `jar` to `target`; what came before a failure is kept in `.part` and resumed.

    The target appears whole and verified, by a rename, or not at all. Raises JAR_UNAVAILABLE
    when it cannot be had, JAR_CORRUPT when what came has another checksum, twice in a row.
    """
    part = target.with_name(target.name + ".part")
    url = f"{base_url.rstrip('/')}/{jar.path}"
    problem = ""
    corrupt = 0
    for attempt in range(TRIES):
        if attempt:
            pause(_FIRST_PAUSE * 2 ** (attempt - 1))
        try:
            _receive(client, url, jar, part, advance)
        except (httpx2.TransportError, _TryAgain) as error:
            problem = str(error) or type(error).__name__
            continue
        except httpx2.HTTPStatusError as error:
            problem = f"the repository answered {error.response.status_code}"
            break
        if is_intact(part, jar):
            part.replace(target)
            return
        corrupt += 1
        advance(-part.stat().st_size)
        part.unlink()
        if corrupt == 2:
            raise MainstemError("JAR_CORRUPT", path=str(target))
    raise MainstemError("JAR_UNAVAILABLE", coordinate=jar.coordinate, problem=problem)


def _receive(client: httpx2.Client, url: str, jar: Jar, part: Path, advance: Advance) -> None:
    have = part.stat().st_size if part.exists() else 0
    if have > jar.size:
        part.unlink()
        have = 0
    if have == jar.size:
        return
    headers = {"Range": f"bytes={have}-"} if have else {}
    with client.stream("GET", url, headers=headers) as response:
        if response.status_code == 416:  # the part fits nothing that the repository has
            advance(-have)
            part.unlink()
            raise _TryAgain("the repository refused to resume")
        if response.status_code in _RETRY_STATUS:
            raise _TryAgain(f"the repository answered {response.status_code}")
        response.raise_for_status()
        resumed = response.status_code == 206
        if have and not resumed:
            advance(-have)
        with part.open("ab" if resumed else "wb") as file:
            for chunk in response.iter_raw(_CHUNK):
                file.write(chunk)
                advance(len(chunk))
    if part.stat().st_size < jar.size:
        raise _TryAgain("the connection ended early")
