"""Resume tokens: round trip, and refusal of anything else."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainstem.errors import MainstemError
from mainstem.views.tokens import Token, decode_token

_OFFSETS = st.dictionaries(st.integers(0, 500), st.integers(0, 2**62), min_size=1, max_size=8)
_TOPICS = st.dictionaries(st.text(min_size=1, max_size=20), _OFFSETS, max_size=3)


@given(st.text(min_size=1, max_size=20), st.integers(1, 10**6), st.none() | _TOPICS)
def test_round_trip(name: str, generation: int, offsets: dict[str, dict[int, int]] | None) -> None:
    token = Token(name, generation, "0123456789abcdef", 1_700_000_000, offsets)
    text = token.encode()
    assert text.replace("-", "").replace("_", "").isalnum()
    assert decode_token(text) == token


@given(st.text(max_size=40))
def test_other_texts_are_refused_or_tokens(text: str) -> None:
    try:
        decode_token(text)
    except MainstemError as error:
        assert error.code == "RESUME_TOKEN_INVALID"


@pytest.mark.parametrize(
    "document",
    [
        b"[]",
        b"{}",
        b'{"n":"a","g":1,"q":"","t":1,"o":[]}',
        b'{"n":"a","g":1,"q":"","t":1,"o":{"0":5}}',
        b'{"n":"a","g":1,"q":"","t":1,"o":{"t":{"0":-5}}}',
        b'{"n":"a","g":1,"q":"","t":1,"o":{"t":{"0":1e400}}}',
        b'{"n":"a","g":1,"q":"","t":1e400}',
        b'{"n":"a","g":1,"o":{"t":{"0":5}}}',
        b"\xff",
        b"5",
    ],
)
def test_wrong_documents(document: bytes) -> None:
    with pytest.raises(MainstemError) as caught:
        decode_token(base64.urlsafe_b64encode(document).decode())
    assert caught.value.code == "RESUME_TOKEN_INVALID"
