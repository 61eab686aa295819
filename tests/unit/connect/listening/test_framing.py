"""Messages out of a TCP connection, however its bytes are cut."""

import random

import pytest

from mainstem.connect.listening.framing import Frame, Framer

LINES = [b"<13>one", b"<14>two two", b"<15>" + b"3" * 40, "<16>vier \u00fc".encode()]
COUNTED = b"".join(b"%d %s" % (len(line), line) for line in LINES)


def frames(data, longest=100, step=None, *, broken=False):
    framer = Framer(longest)
    found = []
    for at in range(0, len(data), step or len(data) or 1):
        found += framer.feed(data[at : at + (step or len(data))])
    return found + framer.finish(broken=broken), framer


@pytest.mark.parametrize("step", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(
    "data",
    [
        b"\n".join(LINES) + b"\n",
        b"\r\n".join(LINES) + b"\r\n",
        b"\0\n".join(LINES) + b"\0\n",
        b"\n\n".join(LINES) + b"\n\n",
        b"\n".join(LINES),
        COUNTED,
        b"".join(b"%d %s\n" % (len(line) + 1, line) for line in LINES),
    ],
    ids=["lf", "crlf", "nul", "empty lines", "the last without an end", "counted", "counted, lf"],
)
def test_all_messages_come(data, step):
    assert frames(data, step=step)[0] == [Frame(line) for line in LINES]


def test_counted_messages_may_have_line_feeds():
    assert frames(b"9 <13>a\nb\nc7 <13>end")[0] == [Frame(b"<13>a\nb\nc"), Frame(b"<13>end")]


@pytest.mark.parametrize("step", [1, 3, 1000])
def test_a_line_that_is_too_long_comes_in_pieces(step):
    data = b"<13>a\n" + b"x" * 25 + b"\n<13>b\n"
    found, _ = frames(data, 10, step)
    assert [f.data for f in found if f.problem is None] == [b"<13>a", b"<13>b"]
    pieces = [f for f in found if f.problem is not None]
    assert b"".join(piece.data for piece in pieces) == b"x" * 25
    assert [f"piece {n} of" in p.problem for n, p in enumerate(pieces, 1)] == [True] * len(pieces)
    assert all(len(piece.data) <= 10 for piece in pieces)


@pytest.mark.parametrize("step", [1, 3, 1000])
def test_a_counted_message_that_is_too_long_comes_in_pieces(step):
    data = b"5 <13>a25 " + b"x" * 25 + b"5 <13>b"
    found, framer = frames(data, 10, step)
    assert [f.data for f in found if f.problem is None] == [b"<13>a", b"<13>b"]
    assert b"".join(f.data for f in found if f.problem) == b"x" * 25
    assert framer.lost is None


def test_the_rest_of_a_connection_that_ends():
    assert frames(b"<13>a\n<13>half")[0][-1] == Frame(b"<13>half")
    last = frames(b"<13>a\n<13>half", broken=True)[0][-1]
    assert last.data == b"<13>half" and "broke" in last.problem
    last = frames(b"5 <13>a20 <13>half")[0][-1]
    assert last.data == b"20 <13>half" and "ended" in last.problem


def test_where_counts_are_lost_all_that_is_left_is_kept():
    found, framer = frames(b"5 <13>aoops, no count here", longest=10)
    assert framer.lost is not None
    assert found[0] == Frame(b"<13>a")
    assert b"".join(f.data for f in found[1:]) == b"oops, no count here"
    assert all(f.problem == framer.lost for f in found[1:])
    assert frames(b"99999999999999 <13>a")[1].lost is not None


def test_no_byte_is_lost_whatever_comes():
    chance = random.Random(6587)
    for _ in range(300):
        data = bytes(chance.choice(b"0123 <>a\n\r") for _ in range(chance.randrange(200)))
        framer = Framer(chance.randrange(5, 30))
        found, at = [], 0
        while at < len(data) and framer.lost is None:
            step = chance.randrange(1, 20)
            found += framer.feed(data[at : at + step])
            at += step
        found += framer.finish(broken=False)
        if data[:1].isdigit():
            continue  # counts are taken away, which is what the other tests are about
        ends = bytes.maketrans(b"", b"")
        kept = b"".join(f.data for f in found).translate(ends, b"\r\n")
        assert kept == data.translate(ends, b"\r\n")
