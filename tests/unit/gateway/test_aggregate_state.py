"""Where the events of an aggregate are: every event is found by its version."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mainstem.gateway.aggregate_state import State, cut, last_places, split, stretches
from mainstem.log.delivery import Place


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=5), min_size=1, max_size=40),
    st.integers(0, 60),
    st.integers(1, 50),
)
def test_every_event_is_found(appends: list[list[int]], since: int, limit: int) -> None:
    """Each append as gaps before its events, which others have written."""
    state, places = State(), []
    paged = []
    offset = 0
    for number, gaps in enumerate(appends):
        some = []
        for gap in gaps:
            offset += gap
            some.append(Place("t", 0, offset))
            offset += 1
        offset += 1  # the marker of the transaction
        places += some
        state = State.read(state.behind(str(number), some).kept())
        assert last_places("t", state) == some
        if number % 7 == 6:
            full, kept = split(state)
            paged += full
            state = State(state.version, state.mark, state.last, state.pages + 1, kept)
            assert last_places("t", state) == some
    assert state.version == len(places)
    runs = [*paged, *state.runs]
    wanted = cut(runs, since, limit)
    found = {
        run.version + n: Place("t", run.partition, run.offset + n)
        for run in wanted
        for n in range(run.length)
    }
    assert found == dict(list(enumerate(places, 1))[since : since + limit])
    if wanted:
        covered = {n for _, start, end in stretches(wanted) for n in range(start, end)}
        assert covered >= {place.offset for place in found.values()}
