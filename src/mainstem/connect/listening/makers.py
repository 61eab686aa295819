"""Which sources run in the gateway, and what makes each of them run."""

from __future__ import annotations

from collections.abc import Callable

from mainstem.connect.listening.generator import Generator
from mainstem.connect.listening.running import Log, RunningSource, Task
from mainstem.connect.listening.syslog import Syslog
from mainstem.connect.listening.webhook import Webhook

_MAKERS: dict[str, Callable[[Task, Log], RunningSource]] = {
    "generator": Generator,
    "syslog": Syslog,
    "webhook": Webhook,
}


def listens(connector: str) -> bool:
    """Whether sources of a connector run in the gateway."""
    return connector in _MAKERS


def make_source(connector: str, task: Task, log: Log) -> RunningSource:
    """A source, to be started; raises any error of ours."""
    return _MAKERS[connector](task, log)
