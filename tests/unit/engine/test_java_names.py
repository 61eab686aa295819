"""Java is asked once for each name; for what static fields hold, each time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from py4j.java_gateway import JavaClass, JVMView
from py4j.protocol import Py4JError

from mainstem.engine.java_names import remember_names


class Client:
    """The JVM's end: packages, one class, a static method and a field of it."""

    gateway_property = SimpleNamespace(pool=None)
    converters = None

    def __init__(self) -> None:
        self.asked: list[str] = []

    def send_command(self, command: str) -> str:
        _, _, name, member, *_ = command.split("\n")
        self.asked.append(f"{name} {member}".removesuffix(" jvm"))
        return {
            "org": "yp",
            "org.Clock": "ycorg.Clock",
            "Clock": "ycorg.Clock",
            "org.Clock now": "ym",
            "org.Clock ticks": f"yi{len(self.asked)}",
        }.get(self.asked[-1], "xsnothing")


@pytest.fixture
def jvm() -> Any:
    remember_names()
    return JVMView(Client(), "jvm", id="jvm")


def test_a_class_is_asked_for_once(jvm: Any) -> None:
    asked = jvm._gateway_client.asked
    for _ in range(3):
        assert isinstance(jvm.org.Clock, JavaClass)
        assert jvm.Clock._fqn == "org.Clock"
        assert callable(jvm.org.Clock.now)
    assert asked == ["org", "org.Clock", "Clock", "org.Clock now"]


def test_a_field_is_read_each_time_and_what_is_not_there_may_come(jvm: Any) -> None:
    clock = jvm.Clock
    first, second = clock.ticks, clock.ticks
    assert first != second
    for _ in range(2):
        with pytest.raises(Py4JError):
            _ = jvm.Watch
    assert jvm._gateway_client.asked.count("Watch") == 2
