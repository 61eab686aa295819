"""Sources of the gateway are kept in step with the catalog."""

from dataclasses import replace
from pathlib import Path

import pytest

from mainstem.catalog.entry import Catalog, Entry
from mainstem.connect.brought import definitions_of
from mainstem.connect.captures import capture_of
from mainstem.connect.catalogue import spec_of
from mainstem.connect.listening.running import Log, Told
from mainstem.connect.secrets import Secrets
from mainstem.connect.spec import Role
from mainstem.definitions.parse import parse_one
from mainstem.errors import MainstemError
from mainstem.gateway import listeners as module
from mainstem.gateway.listeners import Listeners

LINES = "CREATE SOURCE lines WITH (connector = 'syslog', listen = '127.0.0.1:{port}')"
HOOK = (
    "CREATE SOURCE hook WITH (connector = 'webhook', signature = 'github', secret = '${env:SIGN}')"
)


class Source:
    """A source that only says what is asked of it."""

    def __init__(self, connector, task, events):
        self.told = Told(task.name, state="running", records=3)
        self.task = task
        self._events = events

    def start(self):
        self._events.append(("start", self.task.name, self.task.options.get("listen")))

    def stop(self):
        self._events.append(("stop", self.task.name, self.task.options.get("listen")))


class World:
    """A catalog, and what happens because of it."""

    def __init__(self):
        self.catalog = Catalog()
        self.events = []
        self.environment = {}
        self.secrets = Secrets(Path("/nowhere"), self.environment)
        self.listeners = Listeners(lambda: self.catalog, Log(None, None), self.secrets, self.make)

    def make(self, connector, task, log):
        return Source(connector, task, self.events)

    def create(self, statement, generation=1, **changes):
        definition = parse_one(statement).definition
        spec = spec_of(Role.SOURCE, definition.captures.connector)
        options = spec.resolve(dict(definition.captures.options), Secrets(Path("/"), {"SIGN": "x"}))
        captured = capture_of(spec.name).look(definition.name, options)
        for one in (definition, *definitions_of(definition, captured)):
            entry = Entry(one, "", generation=generation)
            self.catalog = self.catalog.with_entry(replace(entry, **changes))

    def look(self):
        self.listeners.look()
        done, self.events[:] = list(self.events), []
        return done

    def shown(self, name="lines"):
        return self.listeners.one(name)


@pytest.fixture
def world():
    made = World()
    made.create(LINES.format(port=5514))
    assert made.look() == [("start", "lines", "127.0.0.1:5514")]
    return made


def test_a_source_is_started_once(world):
    assert world.look() == []
    told = world.shown("LINES")
    assert (told["state"], told["records"], told["stream"]) == ("running", 3, "lines_events")
    assert [one["name"] for one in world.listeners.all()] == ["lines"]
    assert world.listeners.running("lines").task.stream.topic == "lines_events"


def test_another_option_begins_it_anew(world):
    world.create(LINES.format(port=5515))
    assert world.look() == [
        ("stop", "lines", "127.0.0.1:5514"),
        ("start", "lines", "127.0.0.1:5515"),
    ]


def test_a_source_that_was_dropped_and_made_again_is_another(world):
    world.create(LINES.format(port=5514), generation=2)
    assert [event[0] for event in world.look()] == ["stop", "start"]


def test_pause_resume_restart_and_drop(world):
    world.create(LINES.format(port=5514), paused=True)
    assert [event[0] for event in world.look()] == ["stop"]
    assert (world.shown()["state"], world.shown()["records"]) == ("paused", 3)
    assert world.listeners.running("lines") is None
    world.create(LINES.format(port=5514))
    assert [event[0] for event in world.look()] == ["start"]
    world.listeners.restart("Lines")
    assert [event[0] for event in world.look()] == ["stop", "start"]
    assert world.shown()["restarts"] == 1
    world.catalog = Catalog()
    assert [event[0] for event in world.look()] == ["stop"]
    assert world.shown() is None


def test_a_secret_that_is_missing_is_told_and_tried_again(world, monkeypatch):
    monkeypatch.setattr(module, "_RETRY_SECONDS", 0)
    world.create(HOOK)
    assert world.look() == []
    told = world.shown("hook")
    assert (told["state"], told["error"]["title"]) == ("failed", "SECRET_MISSING")
    world.environment["SIGN"] = "hush"
    assert [event[:2] for event in world.look()] == [("start", "hook")]
    assert "hush" not in str(world.shown("hook"))


def test_while_the_catalog_cannot_be_read_all_goes_on(world):
    def away():
        raise MainstemError("LOG_UNREACHABLE", servers="nowhere")

    world.listeners._catalog = away
    assert world.look() == []
    assert world.shown()["state"] == "running"


def test_the_end_stops_all(world):
    world.listeners.start()
    world.listeners.close()
    world.listeners.close()
    assert world.events == [("stop", "lines", "127.0.0.1:5514")]
