"""Members of groups: how many, how long, and what they are not given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
from tests.unit.gateway.fake_log import MemoryConsumer, MemoryLog

from mainstem.errors import MainstemError
from mainstem.gateway import members as module
from mainstem.gateway.members import Members
from mainstem.log.connection import Connection
from mainstem.log.producer import Outgoing
from mainstem.testing.waiting import eventually


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> MemoryLog:
    monkeypatch.setattr(module, "GroupConsumer", MemoryConsumer)
    monkeypatch.setattr(module, "_LOOK_SECONDS", 0.01)
    MemoryConsumer.log = made = MemoryLog("orders")
    made.place("orders", [Outgoing(b"k" * (n % 2), b"%d" % n) for n in range(10)])
    return made


@pytest.fixture
def members(log: MemoryLog) -> Iterator[Members]:
    made = Members(Connection("nowhere:1"), cast(Any, log), most=2)
    yield made
    made.close()


def refused(code: str, *call: Any, **more: Any) -> None:
    with pytest.raises(MainstemError) as error:
        call[0](*call[1:], **more)
    assert error.value.code == code


def test_their_number_is_bounded(members: Members) -> None:
    members.create("g", "one")
    refused("MEMBER_EXISTS", members.create, "g", "one")
    members.create("g", "two")
    refused("TOO_MANY_MEMBERS", members.create, "g", "three")
    members.delete("g", "one")
    members.create("g", "three")
    refused("MEMBER_UNKNOWN", members.get, "g", "one")


def test_a_silent_one_is_ended(members: Members) -> None:
    silent = members.create("g", "one", topics=["orders"], session_seconds=0.05)
    eventually(lambda: silent.gone and not members.of_group("g"))
    refused("MEMBER_UNKNOWN", members.records, silent, 10, 0)
    refused("MEMBER_UNKNOWN", members.commit, silent)


def test_a_lost_answer_is_given_again(members: Members) -> None:
    member = members.create("g", topics=["orders"])
    first = members.records(member, 4, 0)
    assert (first.number, len(first.records)) == (1, 4)
    assert members.records(member, 4, 0, batch=1) == first
    second = members.records(member, 4, 0, batch=2)
    assert not {r.offset for r in first.records if r.partition == 0} & {
        r.offset for r in second.records if r.partition == 0
    }
    refused("GROUP_STATE", members.records, member, 4, 0, batch=1)
    assert members.commit(member) == member.consumer.positions()


def test_what_does_not_fit_its_state(members: Members) -> None:
    member = members.create("g")
    refused("GROUP_STATE", members.records, member, 1, 0)
    refused("GROUP_STATE", members.seek, member, {("orders", 0): 1})
    refused("GROUP_STATE", members.commit, member, {("orders", 0): 1})
    refused("UNKNOWN_TOPIC", members.subscribe, member, ["nothing"])
    members.subscribe(member, ["orders"])
    members.seek(member, {("orders", 1): 3})
    assert [r.offset for r in members.records(member, 9, 0).records if r.partition == 1] == [3, 4]
    moved = members.seek_all(member, lambda admin, topic: admin.end_offsets(topic))
    assert moved == {("orders", 0): 5, ("orders", 1): 5}


@pytest.mark.parametrize(
    ("group", "code"),
    [("mainstem.home", "NAME_RESERVED"), ("_x", "NAME_RESERVED"), ("a b", "BAD_REQUEST")],
)
def test_groups_that_are_not_for_clients(members: Members, group: str, code: str) -> None:
    refused(code, members.create, group)
