"""Explain and apply read the same list; a plan survives its journey as JSON."""

from dataclasses import replace

import pytest

from mainstem.catalog.apply import apply_plan
from mainstem.catalog.entry import Entry
from mainstem.catalog.explain import explain
from mainstem.catalog.fingerprint import fingerprint
from mainstem.catalog.plan import ChangeInPlace, CreateObject, DropObject, Plan, Rebuild, topic_need
from mainstem.definitions.parse import parse_one
from mainstem.errors import MainstemError


def entry(sql, **more):
    definition = parse_one(sql).definition
    return Entry(definition, fingerprint(definition, []), **more)


OLD = entry("CREATE STREAM home AS SELECT user\nFROM clicks\nWHERE page = '/home'")
NEW = entry("CREATE STREAM home AS SELECT user\nFROM clicks\nWHERE page = '/start'")
CLICKS = entry("CREATE STREAM clicks (user STRING)")
TABLE = entry("CREATE TABLE visits AS SELECT page, count(*) AS n FROM clicks GROUP BY page")
FOREIGN = entry("CREATE STREAM theirs (a INT)", owns_topic=False)
PLAN = Plan(
    7,
    (
        CreateObject(CLICKS, topic_need(CLICKS), 0),
        CreateObject(FOREIGN, None, 0),
        ChangeInPlace(NEW, OLD, "query changed"),
        Rebuild(replace(TABLE, generation=2), TABLE, "query changed", 12345),
        DropObject(entry("CREATE STREAM old (a INT)"), "no longer in the project", 1),
        DropObject(entry("CREATE STREAM kept (a INT)", owns_topic=False), "DROP", 0),
    ),
    "local stack",
)

TEXT = """\
Plan for local stack:
  + stream clicks  new
  + stream theirs  new, on the existing topic theirs
  ~ stream home    query changed; in place
       FROM clicks
      -WHERE page = '/home'
      +WHERE page = '/start'
  ! table visits   query changed; rebuilt from 12,345 records
  - stream old     no longer in the project; 1 record is deleted
  - stream kept    DROP; topic kept stays
2 to create, 1 to change, 1 to rebuild, 2 to drop."""


def test_explain():
    assert explain(PLAN) == TEXT
    assert explain(Plan(1, ())) == "No changes."


def test_a_wildcard_stream_in_words():
    chat = entry("CREATE STREAM chat FROM TOPICS '*.chat' (a INT)", owns_topic=False)
    text = explain(Plan(1, (CreateObject(chat, None, 0), DropObject(chat, "DROP", 0))))
    assert "+ stream chat  new, over the topics *.chat" in text
    assert "- stream chat  DROP; the topics *.chat stay" in text


def test_json_round_trip():
    again = Plan.from_json(PLAN.to_json())
    assert again == PLAN
    assert explain(again) == TEXT


def test_the_digest_sees_what_is_done_and_not_what_it_costs():
    first, *rest = PLAN.steps
    cheaper = replace(PLAN, steps=(replace(first, replay_records=99), *rest))
    assert cheaper.digest == PLAN.digest
    assert replace(PLAN, steps=tuple(rest)).digest != PLAN.digest
    other = replace(first, entry=replace(first.entry, generation=3))
    assert replace(PLAN, steps=(other, *rest)).digest != PLAN.digest


class Recorder:
    """An executor that writes down what it is told."""

    def __init__(self, stale=False):
        self.acts = []
        self.stale = stale

    def create_topic(self, topic):
        self.acts.append(("create", topic.name))

    def alter_topic(self, topic):
        self.acts.append(("alter", topic.name, topic.retention, topic.partitions, topic.compacted))

    def write_catalog(self, changes, revision):
        if self.stale:
            raise MainstemError("STALE_PLAN", planned=revision, actual=9)
        self.acts.append(("catalog", {n: e and e.generation for n, e in changes.items()}, revision))

    def delete_topic(self, topic):
        self.acts.append(("delete", topic))


def test_topics_then_the_catalog_then_deletes():
    recorder = Recorder()
    apply_plan(PLAN, recorder)
    assert recorder.acts == [
        ("create", "clicks"),
        (
            "catalog",
            {"clicks": 1, "theirs": 1, "home": 1, "visits": 2, "old": None, "kept": None},
            7,
        ),
        ("delete", "old"),
    ]


def test_a_stale_plan_deletes_nothing():
    recorder = Recorder(stale=True)
    with pytest.raises(MainstemError) as caught:
        apply_plan(PLAN, recorder)
    assert caught.value.code == "STALE_PLAN"
    assert [act[0] for act in recorder.acts] == ["create"]


def test_no_steps_no_acts():
    recorder = Recorder()
    apply_plan(Plan(3, ()), recorder)
    assert recorder.acts == []


def test_changed_topic_settings_are_set():
    after = entry("CREATE STREAM clicks (user STRING) WITH (retention = '1 day', partitions = 8)")
    recorder = Recorder()
    apply_plan(Plan(1, (ChangeInPlace(after, CLICKS, "retention changed"),)), recorder)
    assert recorder.acts[0] == ("alter", "clicks", "1 day", 8, False)


def test_a_move_to_another_topic_keeps_the_name():
    moved = entry("CREATE STREAM clicks (user STRING) WITH (topic = 'web')", generation=2)
    plan = Plan(1, (DropObject(CLICKS, "moves", 3), CreateObject(moved, topic_need(moved), 0)))
    recorder = Recorder()
    apply_plan(plan, recorder)
    assert recorder.acts == [("create", "web"), ("catalog", {"clicks": 2}, 1), ("delete", "clicks")]


def test_entries_survive_the_catalog_topic():
    assert Entry.from_json(TABLE.to_json()) == TABLE
