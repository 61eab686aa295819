"""Syslog messages out of the bytes of a TCP connection, by RFC 6587.

A connection whose first byte is a digit counts octets (`11 <34>message`), any other ends messages
with a line feed; it stays so to its end. Memory is bounded: of a message that is too long, each
piece comes for itself, marked with what is wrong with it.
"""

from __future__ import annotations

from dataclasses import dataclass

_DIGITS = b"0123456789"
_MOST_DIGITS = 10


@dataclass(frozen=True, slots=True)
class Frame:
    """The bytes of a message; or of what cannot be one, with the reason."""

    data: bytes
    problem: str | None = None


class Framer:
    """The messages of one connection. For one thread."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._rest = b""
        self._counted: bool | None = None
        self._missing = 0
        """Bytes that have not come yet of a counted message that is too long."""
        self._piece = 0
        """How many pieces there were of a message that is too long."""
        self.lost: str | None = None
        """Why no more can be read; then the connection has to end."""

    def feed(self, data: bytes) -> list[Frame]:
        """The messages that end within these bytes. After `lost`, call it no more."""
        data = self._rest + data if self._rest else data
        self._rest = b""
        if not data:
            return []
        if self._counted is None:
            self._counted = data[0] in _DIGITS
        return self._count(data) if self._counted else self._split(data)

    def finish(self, *, broken: bool) -> list[Frame]:
        """What is left when the connection has ended; `broken`: not by the sender's wish."""
        rest, self._rest = self._rest, b""
        if not rest and not self._missing:
            return []
        if self._counted:
            problem = "the connection ended inside of a message"
            return [Frame(rest, problem)] if rest else []
        if self._piece:
            return [self._cut(rest)]
        if broken:
            return [Frame(rest, "the connection broke inside of a line")]
        return _whole(rest)

    # -- line feeds

    def _split(self, data: bytes) -> list[Frame]:
        *lines, rest = data.split(b"\n")
        frames: list[Frame] = []
        for line in lines:
            if self._piece or len(line) > self._longest:
                frames += self._cuts(line)
                self._piece = 0
            else:
                frames += _whole(line)
        if len(rest) > self._longest:
            cut = len(rest) - len(rest) % self._longest
            frames += self._cuts(rest[:cut])
            rest = rest[cut:]
        self._rest = rest
        return frames

    # -- counted octets

    def _count(self, data: bytes) -> list[Frame]:
        frames: list[Frame] = []
        at = 0
        while at < len(data):
            if self._missing:
                part = data[at : at + min(self._missing, self._longest)]
                frames.append(self._cut(part))
                at += len(part)
                self._missing -= len(part)
                self._piece = self._piece if self._missing else 0
                continue
            space = data.find(b" ", at, at + _MOST_DIGITS + 1)
            size = data[at : space if space >= 0 else at + _MOST_DIGITS + 1]
            if not size.isdigit() or len(size) > _MOST_DIGITS:
                self.lost = "a message does not begin with its length, though the first one did"
                return frames + [Frame(part, self.lost) for part in self._parts(data[at:])]
            start, count = space + 1, int(size)
            if space >= 0 and count > self._longest:
                self._missing = count
                at = start
            elif space >= 0 and len(data) >= start + count:
                frames += _whole(data[start : start + count])
                at = start + count
            else:
                break  # the rest of it is still to come
        self._rest = data[at:]
        return frames

    # -- too long

    def _cuts(self, data: bytes) -> list[Frame]:
        return [self._cut(part) for part in self._parts(data)]

    def _cut(self, data: bytes) -> Frame:
        self._piece += 1
        most = f"a message of more than {self._longest} bytes"
        return Frame(data, f"it is piece {self._piece} of {most}")

    def _parts(self, data: bytes) -> list[bytes]:
        return [data[at : at + self._longest] for at in range(0, len(data), self._longest)]


def without_end(data: bytes) -> bytes:
    """The message without what some senders end it with."""
    return data.rstrip(b"\r\n\0")


def _whole(data: bytes) -> list[Frame]:
    line = without_end(data)
    return [Frame(line)] if line else []
