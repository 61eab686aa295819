"""Signatures of requests: as the senders' own documents show them, and forged ones."""

import base64
import hmac

import pytest

from mainstem.connect.listening.signatures import GITHUB, HEADERS, PLAIN, STRIPE, Signature
from mainstem.errors import MainstemError

NOW = 1_492_774_577.0
BODY = b'{"id":1}'
SECRET = b"It's a Secret to Everybody"


def signer(kind, secret=SECRET, tolerance=300.0):
    return Signature(kind, secret, HEADERS[kind], tolerance)


def digest(data=BODY, secret=SECRET):
    return hmac.digest(secret, data, "sha256")


def stripe(at=int(NOW), body=BODY, secret=SECRET):
    return f"t={at},v1={digest(f'{at}.'.encode() + body, secret).hex()}"


GOOD = {
    # https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
    "github, its own example": (
        GITHUB,
        "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
        b"Hello, World!",
    ),
    "stripe": (STRIPE, stripe(), BODY),
    "stripe, with other schemes": (STRIPE, f"{stripe()},v0=6ffbb59b2300aae63f27", BODY),
    "stripe, while a secret is replaced": (
        STRIPE,
        stripe().replace(",v1", f",v1={'0' * 64},v1"),
        BODY,
    ),
    "stripe, at the edge of the tolerance": (STRIPE, stripe(int(NOW) - 300), BODY),
    "plain, hexadecimal": (PLAIN, digest().hex(), BODY),
    "plain, upper case": (PLAIN, digest().hex().upper(), BODY),
    "plain, with a prefix": (PLAIN, f"sha256={digest().hex()}", BODY),
    "plain, base64": (PLAIN, base64.b64encode(digest()).decode(), BODY),
}
BAD = {
    "nothing": (GITHUB, None, "no header"),
    "an empty one": (GITHUB, "", "does not fit"),
    "without its prefix": (GITHUB, digest().hex(), "does not fit"),
    "sha1": (GITHUB, "sha1=" + digest().hex(), "does not fit"),
    "another secret": (GITHUB, "sha256=" + digest(secret=b"x").hex(), "does not fit"),
    "another body": (GITHUB, "sha256=" + digest(b"{}").hex(), "does not fit"),
    "cut off": (GITHUB, "sha256=" + digest().hex()[:-2], "does not fit"),
    "not hexadecimal": (GITHUB, "sha256=zz", "does not fit"),
    "not ASCII": (PLAIN, "\u00fc", "does not fit"),
    "stripe, too old": (STRIPE, stripe(int(NOW) - 301), "too long ago"),
    "stripe, from the future": (STRIPE, stripe(int(NOW) + 301), "too long ago"),
    "stripe, no time": (STRIPE, stripe().partition(",")[2], "when it was made"),
    "stripe, two times": (STRIPE, f"t=1,{stripe()}", "when it was made"),
    "stripe, another time than was signed": (
        STRIPE,
        stripe(int(NOW) - 10).replace(str(int(NOW) - 10), str(int(NOW))),
        "does not fit",
    ),
    "stripe, an older scheme alone": (STRIPE, stripe().replace("v1", "v0"), "does not fit"),
    "plain, of nothing": (PLAIN, digest(b"").hex(), "does not fit"),
}


@pytest.mark.parametrize(("kind", "given", "body"), GOOD.values(), ids=GOOD)
def test_a_signed_request_passes(kind, given, body):
    signer(kind).check({HEADERS[kind]: given}, body, NOW)


@pytest.mark.parametrize(("kind", "given", "why"), BAD.values(), ids=BAD)
def test_any_other_is_refused_with_the_reason(kind, given, why):
    headers = {} if given is None else {HEADERS[kind]: given}
    with pytest.raises(MainstemError) as caught:
        signer(kind).check(headers, BODY, NOW)
    assert (caught.value.code, caught.value.status) == ("SIGNATURE_INVALID", 401)
    assert why in caught.value.message
    assert SECRET.decode() not in str(caught.value.problem())
