"""Whether a request was signed by who knows the secret: as GitHub does it, as Stripe, or plainly.

What is compared is compared in constant time, so that a guess tells nothing by how long it takes.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Mapping
from dataclasses import dataclass

from mainstem.errors import MainstemError

GITHUB, STRIPE, PLAIN = "github", "stripe", "hmac-sha256"
HEADERS = {GITHUB: "x-hub-signature-256", STRIPE: "stripe-signature", PLAIN: "x-signature"}
_SHA256 = "sha256="
_MOST_SIGNATURES = 10


@dataclass(frozen=True, slots=True)
class Signature:
    """How requests are signed."""

    kind: str
    secret: bytes
    header: str
    """In small letters."""
    tolerance_seconds: float
    """How old a signature may be that says when it was made."""

    def check(self, headers: Mapping[str, str], body: bytes, now: float) -> None:
        """SIGNATURE_INVALID unless the body was signed. Names of headers are in small letters."""
        given = headers.get(self.header)
        if given is None:
            raise _refused(f"there is no header {self.header}")
        match self.kind:
            case "github":
                good = given.startswith(_SHA256) and self._fits(given[len(_SHA256) :], body)
            case "stripe":
                good = self._stripe(given, body, now)
            case _:
                good = self._fits(given.strip().removeprefix(_SHA256), body)
        if not good:
            raise _refused(f"the header {self.header} does not fit the body")

    def _stripe(self, given: str, body: bytes, now: float) -> bool:
        """`t=seconds,v1=hex,...`; several signatures while a secret is being replaced."""
        parts = [part.strip().partition("=") for part in given.split(",")]
        times = [value for name, _, value in parts if name == "t"]
        if len(times) != 1 or not (times[0].isascii() and times[0].isdigit()):
            raise _refused(f"the header {self.header} does not say when it was made")
        if abs(now - int(times[0])) > self.tolerance_seconds:
            raise _refused("it was made too long ago, or a clock is wrong")
        signed = f"{times[0]}.".encode() + body
        values = [value for name, _, value in parts if name == "v1"]
        return any(self._fits(value, signed) for value in values[:_MOST_SIGNATURES])

    def _fits(self, written: str, signed: bytes) -> bool:
        """Hexadecimal, or base64 where it is plain."""
        wanted = hmac.digest(self.secret, signed, "sha256")
        try:
            found = bytes.fromhex(written)
        except ValueError:
            if self.kind != PLAIN:
                return False
            try:
                found = base64.b64decode(written, validate=True)
            except (binascii.Error, ValueError):
                return False
        return hmac.compare_digest(found, wanted)


def _refused(problem: str) -> MainstemError:
    return MainstemError("SIGNATURE_INVALID", problem=problem)
