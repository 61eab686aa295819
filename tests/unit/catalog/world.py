"""A catalog, a log and an engine in memory, for tests of plans; and some definitions."""

from dataclasses import dataclass, field

import pytest

from mainstem.catalog.build import build_plan
from mainstem.catalog.entry import Catalog, Origin
from mainstem.catalog.plan import DropObject, Plan
from mainstem.definitions.parse import parse_one
from mainstem.definitions.project import load_definitions
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column

CLICKS = "CREATE STREAM clicks (user STRING, page STRING, at TIMESTAMP) WITH (event_time = 'at');"
HOME = "CREATE STREAM home AS SELECT user, at FROM clicks WHERE page = '/home';"
VISITS = "CREATE TABLE visits AS SELECT page, count(*) AS n FROM clicks GROUP BY page;"
LATEST = "CREATE TABLE latest WITH (key = 'user') AS SELECT * FROM clicks;"
PEOPLE = "CREATE TABLE people (id INT PRIMARY KEY, name STRING);"
ALL = CLICKS + HOME + VISITS + LATEST + PEOPLE


@dataclass
class World:
    """A catalog, a log and an engine in memory."""

    catalog: Catalog = field(default_factory=Catalog)
    topics: dict[str, int] = field(default_factory=dict)
    partition_count: int = 4
    analysed: list[str] = field(default_factory=list)

    def analyse(self, definition, inputs):
        self.analysed.append(definition.name)
        if definition.query is None:
            return definition.columns
        known = {c.name: c for source in inputs for c in source.columns}
        found = []
        for name in parse_one(definition.query.text).query.columns_read:
            found += known.values() if name == "*" else [known[name]] if name in known else []
        if definition.query.aggregates:
            keys = [known.get(key, Column(key, "string")) for key in definition.key]
            return (*keys, Column("n", "bigint"))
        return tuple(dict.fromkeys(found))

    def records(self, topic):
        return self.topics.get(topic)

    def partitions(self, topic):
        return self.partition_count if topic in self.topics else None

    def matching(self, pattern):
        return [topic for topic in self.topics if pattern.matches(topic)]

    def plan(self, sql, origin=Origin.PROJECT, drop_missing=True) -> Plan:
        return build_plan(
            self.catalog,
            load_definitions([("p.sql", sql)]),
            analyser=self,
            facts=self,
            origin=origin,
            drop_missing=drop_missing,
        )

    def apply(self, sql, **more) -> Plan:
        plan = self.plan(sql, **more)
        for step in plan.steps:
            entries = dict(self.catalog.entries)
            name = step.entry.name.lower()
            if isinstance(step, DropObject):
                entries.pop(name)
                if step.entry.owns_topic:
                    self.topics.pop(step.entry.definition.topic, None)
            else:
                entries[name] = step.entry
                self.topics.setdefault(step.entry.definition.topic, 100)
            self.catalog = Catalog(entries, self.catalog.revision + 1)
        self.analysed.clear()
        return plan


def steps(plan):
    return [(type(step).__name__, step.entry.name) for step in plan.steps]


def failure(call, *args, **more):
    with pytest.raises(MainstemError) as caught:
        call(*args, **more)
    return caught.value


def filled():
    """One with all of these definitions."""
    made = World()
    made.apply(ALL)
    return made
