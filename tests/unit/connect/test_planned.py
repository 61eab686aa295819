"""Sources and sinks in plans: what comes, changes and goes with them, and what is refused."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from mainstem.catalog.build import build_plan, drop_plan, follow_plan
from mainstem.catalog.entry import Catalog, Entry, Origin
from mainstem.catalog.explain import explain
from mainstem.catalog.plan import ChangeInPlace, DropObject, Plan, Rebuild
from mainstem.connect.capture import Captured
from mainstem.connect.listening.options import stream_of
from mainstem.connect.planned import PlannedConnectors
from mainstem.connect.secrets import Secrets
from mainstem.definitions.model import Format, Kind
from mainstem.definitions.project import load_definitions
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column

SOURCE = """CREATE SOURCE shop WITH (
  connector = 'postgres-cdc', url = '${env:URL}', tables = 'orders, people');
"""
FILES = """CREATE SOURCE found WITH (
  connector = 'files', folder = '${env:FOLDER}', format = 'lines');
"""
OF_FILES = {"stream": None, "watermark": None, "partitions": None, "retention": None}
READER = "CREATE STREAM big AS SELECT after FROM shop_orders_changes WHERE op = 'c';"
SINK = """CREATE STREAM clicks (id INT, page STRING);
CREATE SINK clicks_out FROM clicks WITH (
  connector = 'postgres', url = 'postgresql://me@db/x', password = '${env:PASSWORD}', table = 'c');
"""
ID, NAME, AGE = Column("id", "bigint"), Column("name", "string"), Column("age", "int")


@dataclass
class World:
    """A catalog, a log, an engine, a database and a target in memory."""

    catalog: Catalog = field(default_factory=Catalog)
    topics: dict[str, int] = field(default_factory=dict)
    tables: dict[str, tuple[Column, ...]] = field(
        default_factory=lambda: {"orders": (ID, NAME), "people": (ID, NAME)}
    )
    problem: MainstemError | None = None
    environment: dict[str, str] = field(
        default_factory=lambda: {"URL": "postgresql://me:s3cret@db/shop", "PASSWORD": "t0p"}
    )
    checked: list[object] = field(default_factory=list)
    looks: int = 0
    joins: bool = False
    told: dict[str, object] = field(default_factory=dict)
    leaving: set[str] = field(default_factory=set)

    # -- the database and the target

    def look(self, name, options):
        self.looks += 1
        assert options["url"] == self.environment["URL"]
        self.told = options
        if self.problem is not None:
            raise self.problem
        return tuple(
            Captured(
                f"public.{table}", f"{name}.public.{table}", columns, ("id",), joins=self.joins
            )
            for table, columns in self.tables.items()
        )

    def check(self, connector, options, source, transforms):
        self.checked.append((connector, options["password"], source.name, source.columns))
        if self.problem is not None:
            raise self.problem

    # -- the engine and the log

    def analyse(self, definition, inputs):
        return tuple(c for c in inputs[0].columns if c.name in definition.query.columns_read)

    def records(self, topic):
        assert topic
        return self.topics.get(topic)

    def partitions(self, topic):
        assert topic
        return 1 if topic in self.topics else None

    def ends(self, topic):
        return {0: self.topics.get(topic, 0)}

    # -- plans

    def connectors(self):
        secrets = Secrets(Path.cwd(), self.environment)
        return PlannedConnectors(
            secrets, lambda connector: self, self.check, self.leaving.__contains__
        )

    def plan(self, sql, origin=Origin.PROJECT, drop_missing=True) -> Plan:
        return build_plan(
            self.catalog,
            load_definitions([("p.sql", sql)]),
            analyser=self,
            facts=self,
            origin=origin,
            drop_missing=drop_missing,
            connectors=self.connectors(),
        )

    def take(self, plan) -> Plan:
        entries = dict(self.catalog.entries)
        for step in plan.steps:
            name, topic = step.entry.name.lower(), step.entry.definition.topic
            if isinstance(step, DropObject):
                entries.pop(name)
                if step.entry.owns_topic:
                    self.topics.pop(topic, None)
            else:
                # as the catalog's topic keeps it
                entries[name] = Entry.from_json(step.entry.to_json())
                if topic:
                    self.topics.setdefault(topic, 5)
        self.catalog = Catalog(entries, self.catalog.revision + 1)
        return plan

    def apply(self, sql, **more) -> Plan:
        return self.take(self.plan(sql, **more))


def steps(plan):
    return [(step.step, step.entry.definition.noun, step.entry.name) for step in plan.steps]


def refusal(call, *args, **more):
    with pytest.raises(MainstemError) as caught:
        call(*args, **more)
    return caught.value


@pytest.fixture
def world():
    made = World()
    made.apply(SOURCE)
    return made


def test_a_source_comes_with_its_streams_and_tables():
    world = World()
    plan = world.apply(SOURCE + READER)
    assert steps(plan)[0] == ("create", "source", "shop")
    assert set(steps(plan)[1:]) == {
        ("create", "stream", "shop_orders_changes"),
        ("create", "table", "shop_orders"),
        ("create", "stream", "shop_people_changes"),
        ("create", "table", "shop_people"),
        ("create", "stream", "big"),
    }
    assert "  + source shop (postgres-cdc)  " in explain(plan)
    assert "new; 2 tables" in explain(plan)
    source, changes, table = (
        world.catalog.get(name) for name in ("shop", "shop_orders_changes", "shop_orders")
    )
    assert (source.owns_topic, source.definition.kind) == (False, Kind.SOURCE)
    assert changes.definition.format is Format.DEBEZIUM
    assert (changes.owns_topic, changes.definition.topic) == (True, "shop.public.orders")
    assert {c.name for c in changes.definition.columns} >= {"op", "before", "after", "at"}
    assert (table.definition.columns, table.definition.key) == ((ID, NAME), ("id",))
    assert {e.definition.source for e in (changes, table)} == {"shop"}


def test_no_changes_stay_no_changes(world):
    assert explain(world.plan(SOURCE)) == "No changes."
    assert explain(world.plan("\n-- other layout\n" + SOURCE.replace(" = ", "="))) == "No changes."
    turned = SOURCE.replace("url = '${env:URL}', tables = 'orders, people'",
                            "tables = 'orders, people', url = '${env:URL}'")  # fmt: skip
    assert turned != SOURCE
    assert explain(world.plan(turned)) == "No changes."


def test_other_statements_do_not_look_into_the_source(world):
    before = world.looks
    world.apply(READER, origin=Origin.STATEMENT, drop_missing=False)
    assert world.looks == before
    assert world.catalog.get("shop") is not None


def test_a_new_column_is_taken_in_where_it_is(world):
    everything = SOURCE + "CREATE TABLE copy AS SELECT * FROM shop_orders;"
    world.analyse = lambda definition, inputs: inputs[0].columns
    world.apply(everything)
    world.tables["orders"] = (ID, NAME, AGE)
    plan = world.apply(everything)
    assert steps(plan) == [
        ("change", "stream", "shop_orders_changes"),
        ("change", "table", "shop_orders"),
        ("change", "table", "copy"),
    ]
    assert world.catalog.get("shop_orders").definition.columns == (ID, NAME, AGE)
    assert set(world.catalog.get("shop_orders").grown) == {"age"}
    assert explain(world.plan(everything)) == "No changes."


def test_a_column_that_is_gone_stays_for_older_changes(world):
    world.tables["orders"] = (AGE, ID)
    plan = world.apply(SOURCE)
    assert {step.step for step in plan.steps} == {"change"}
    assert world.catalog.get("shop_orders").definition.columns == (ID, NAME, AGE)
    assert explain(world.plan(SOURCE)) == "No changes."


def test_a_column_of_another_type_makes_the_table_anew(world):
    world.tables["orders"] = (ID, Column("name", "int"))
    kinds = {step.entry.name: type(step) for step in world.plan(SOURCE).steps}
    assert kinds == {"shop_orders_changes": ChangeInPlace, "shop_orders": Rebuild}


def test_a_table_that_is_no_longer_captured_goes(world):
    del world.tables["people"]
    less = SOURCE.replace("orders, people", "orders")
    for origin, drop_missing in ((Origin.PROJECT, True), (Origin.STATEMENT, False)):
        plan = world.plan(less, origin=origin, drop_missing=drop_missing)
        assert steps(plan) == [
            ("change", "source", "shop"),
            ("drop", "table", "shop_people"),
            ("drop", "stream", "shop_people_changes"),
        ]
    assert "options changed; in place" in explain(plan)


def test_tables_cannot_be_added_while_the_source_runs(world):
    world.tables["items"] = (ID,)
    error = refusal(world.plan, SOURCE.replace("people'", "people, items'"))
    assert (error.code, str(error.location)) == ("TABLE_ADDED", "p.sql:2:60")
    # one that a pattern has come to match is told of
    told = explain(world.plan(SOURCE))
    assert told.startswith("No changes.\nNote: source shop does not capture public.items")


def test_tables_join_a_source_that_reads_them_beside_changes(world):
    world.joins = True
    world.tables["items"] = (ID,)
    for written in (SOURCE.replace("people'", "people, items'"), SOURCE):
        plan = world.plan(written)
        assert {("create", "stream", "shop_items_changes"), ("create", "table", "shop_items")} <= {
            *steps(plan)
        }
        assert not [step for step in plan.steps if isinstance(step, Rebuild)]
        assert "Note: source shop reads public.items while" in explain(plan)


def test_another_place_is_refused(world):
    error = refusal(world.plan, SOURCE.replace("env:URL", "env:URL2"))
    assert (error.code, str(error.location)) == ("SOURCE_MOVED", "p.sql:2:37")


def test_a_name_is_free_when_what_had_it_is_gone(world):
    world.leaving.add("shop")
    assert explain(world.plan(SOURCE)) == "No changes."
    world.apply("")
    error = refusal(world.plan, SOURCE)
    assert (error.code, str(error.location)) == ("SOURCE_LEAVING", "p.sql:1:1")
    world.leaving.clear()
    assert len(world.plan(SOURCE).steps) == 5


def test_a_source_that_does_not_answer_is_as_known(world):
    why = "no route to postgresql://me:s3cret@db/shop"
    world.problem = MainstemError("CONNECTOR_UNREACHABLE", what="the database", problem=why)
    told = explain(world.plan(SOURCE))
    assert told.startswith("No changes.\nNote: source shop was not looked into")
    assert "s3cret" not in told
    error = refusal(World(problem=world.problem).plan, SOURCE)
    assert (error.code, str(error.location)) == ("CONNECTOR_UNREACHABLE", "p.sql:1:1")
    assert "s3cret" not in str(error.problem())


@pytest.mark.parametrize(
    ("old", "new", "code", "place"),
    [
        ("postgres-cdc", "postgres-cd", "UNKNOWN_CONNECTOR", "2:15"),
        ("postgres-cdc", "postgres", "UNKNOWN_CONNECTOR", "2:15"),
        ("tables", "tabels", "UNKNOWN_OPTION", "2:51"),
        ("'orders, people'", "'orders,'", "INVALID_OPTION", "2:60"),
        (", tables = 'orders, people'", "", "MISSING_OPTION", "1:1"),
        ("${env:URL}", "${env:NONE}", "SECRET_MISSING", "2:37"),
        ("${env:URL}", "${evn:URL}", "INVALID_OPTION", "2:37"),
        ("${env:URL}", "postgresql://me:plain@db/shop", "SECRET_IN_PLAIN", "2:37"),
    ],
)
def test_options_are_checked_at_their_place(old, new, code, place):
    assert old in SOURCE
    error = refusal(World().plan, SOURCE.replace(old, new))
    assert (error.code, str(error.location)) == (code, f"p.sql:{place}")
    assert "plain@" not in str(error.problem())


def test_what_a_source_brings_goes_with_it_only(world):
    world.apply(SOURCE + READER)
    error = refusal(drop_plan, world.catalog, "shop_orders", facts=world)
    assert (error.code, error.params["source"]) == ("OBJECT_OF_SOURCE", "shop")
    error = refusal(drop_plan, world.catalog, "shop", facts=world)
    assert (error.code, error.params["dependents"]) == ("HAS_DEPENDENTS", "big")
    plan = drop_plan(world.catalog, "SHOP", facts=world, cascade=True)
    assert {step.entry.name for step in plan.steps} == set(world.catalog.entries)
    lost = {step.entry.definition.topic for step in plan.steps if step.entry.owns_topic}
    assert lost == {"shop.public.orders", "shop.public.people", "shop_orders", "shop_people", "big"}
    assert "- source shop (postgres-cdc)" in explain(plan)
    assert steps(world.plan(""))[-1][0] == "drop"
    assert {step.entry.name for step in world.plan("").steps} == set(world.catalog.entries)


def test_what_a_source_brings_is_of_the_source_s_origin():
    world = World()
    world.apply(SOURCE, origin=Origin.STATEMENT, drop_missing=False)
    shop = replace(world.catalog.get("shop_orders"), origin=Origin.PROJECT)
    world.catalog = world.catalog.with_entry(shop)
    assert explain(world.plan("")) == "No changes."


def test_names_are_one_room(world):
    mine = "CREATE TABLE shop_orders (id INT PRIMARY KEY);"
    error = refusal(world.plan, mine, origin=Origin.STATEMENT, drop_missing=False)
    assert (error.code, str(error.location)) == ("OBJECT_OF_SOURCE", "p.sql:1:1")
    assert refusal(World().plan, mine + SOURCE).code == "DUPLICATE_NAME"
    other = World()
    other.apply(mine, origin=Origin.STATEMENT, drop_missing=False)
    assert refusal(other.plan, SOURCE).code == "DUPLICATE_NAME"
    for before, after in (
        (SOURCE, "CREATE STREAM shop (id INT);"),
        ("CREATE STREAM shop (id INT);", SOURCE),
    ):
        changed = World()
        changed.apply(before)
        assert refusal(changed.plan, after).code == "WRONG_KIND"


def test_records_of_others_are_not_taken_for_changes():
    world = World(topics={"shop.public.orders": 7})
    assert refusal(world.plan, SOURCE).code == "TOPIC_MISMATCH"
    world.topics["shop.public.orders"] = 0  # what an interrupted apply has left
    world.apply(SOURCE)
    assert world.catalog.get("shop_orders_changes").owns_topic


def test_columns_that_grow_elsewhere_leave_sources_alone(world):
    class Schemas:
        def judge(self, definition, before):
            raise AssertionError(definition)

    plan = follow_plan(world.catalog, analyser=world, facts=world, schemas=Schemas())
    assert plan.steps == ()


def test_transforms_of_a_source_are_asked_for_and_told_at_their_place():
    world = World()
    text = SOURCE.rstrip().removesuffix(";") + "\n  TRANSFORM (mask(orders.name, redact))"
    world.apply(text)
    assert world.told["redact"] == ("public.orders.name",)
    world.problem = MainstemError(
        "INVALID_TRANSFORM", problem="no", advice="no", column="public.orders.name"
    )
    error = refusal(world.plan, text + ";\nCREATE STREAM x (a INT)")
    line = text.count("\n") + 1
    assert str(error.location) == f"p.sql:{line}:19"
    error = refusal(World().plan, text.replace("redact", "hash"))
    assert str(error.location) == f"p.sql:{line}:14"


# -- sinks


def test_a_sink_is_checked_when_it_is_new_or_changes():
    world = World()
    plan = world.apply(SINK)
    assert steps(plan) == [("create", "stream", "clicks"), ("create", "sink", "clicks_out")]
    assert "+ sink clicks_out (postgres)" in explain(plan)
    columns = (Column("id", "int"), Column("page", "string"))
    assert world.checked == [("postgres", "t0p", "clicks", columns)]
    receipts = world.catalog.get("clicks_out").definition.columns
    assert [column.name for column in receipts] == ["batch", "records"]
    world.problem = MainstemError("CONNECTOR_UNREACHABLE", what="db", problem="t0p is wrong")
    assert explain(world.plan(SINK)) == "No changes."
    error = refusal(World(problem=world.problem).plan, SINK)
    assert (error.code, str(error.location)) == ("CONNECTOR_UNREACHABLE", "p.sql:2:1")
    assert "t0p" not in error.message


def test_a_salt_that_is_not_there_is_told():
    masked = SINK.replace("'c')", "'c')\n  TRANSFORM (mask(page, hash, '${env:NONE}'))")
    assert refusal(World().plan, masked).code == "SECRET_MISSING"


def test_an_error_of_the_target_is_at_its_option():
    wrong = MainstemError("INVALID_OPTION", option="table", value="c", problem="no", advice="no")
    error = refusal(World(problem=wrong).plan, SINK)
    assert str(error.location) == "p.sql:3:95"


@pytest.mark.parametrize(
    ("old", "new", "step"),
    [
        ("table = 'c'", "table = 'd'", Rebuild),
        ("${env:PASSWORD}", "${env:URL}", ChangeInPlace),
        ("FROM clicks ", "FROM others ", Rebuild),
        ("page STRING", "page STRING, more INT", ChangeInPlace),
        ("table = 'c')", "table = 'c') TRANSFORM (drop(page))", ChangeInPlace),
    ],
)
def test_a_sink_begins_anew_elsewhere_only(old, new, step):
    world = World()
    others = "CREATE STREAM others (id INT);"
    world.apply(SINK + others)
    assert old in SINK
    plan = world.plan(SINK.replace(old, new) + others)
    [changed] = [s for s in plan.steps if s.entry.name == "clicks_out"]
    assert type(changed) is step
    assert len(world.checked) == 2


def test_entries_from_before_there_were_connectors_are_read():
    world = World()
    world.apply("CREATE STREAM clicks (id INT);")
    entry = world.catalog.get("clicks")
    old = json.loads(entry.to_json())
    for name in ("target", "captures", "source"):
        del old["definition"][name]
    assert Entry.from_json(json.dumps(old).encode()) == entry


def test_a_source_that_runs_in_the_engine_is_asked_for_there():
    asked = []

    def look(source):
        asked.append(dict(source.captures.options))
        return (stream_of(source.name, OF_FILES, (ID,)),)

    def never(*_):
        raise AssertionError("nobody else is asked")

    secrets = Secrets(Path(), {})  # the engine fills them in, not the gateway
    connectors = PlannedConnectors(secrets, never, never, ask_engine=look)
    [source] = load_definitions([("a.sql", FILES)], {})
    expansion = connectors.expand(source, None, ())
    assert asked == [{"folder": "${env:FOLDER}", "format": "lines"}]
    [stream] = expansion.definitions
    assert (stream.name, stream.source, stream.columns) == ("found_events", "found", (ID,))


def test_an_index_of_a_table_that_comes_with_a_source_is_kept_by_the_source(world):
    sql = "CREATE INDEX by_name ON Shop_Orders (name);\n" + SOURCE
    plan = world.apply(sql)
    assert {(s.step, s.entry.name) for s in plan.steps} == {
        ("change", "shop"), ("change", "shop_orders"),
    }  # fmt: skip
    (index,) = world.catalog.get("shop_orders").definition.indexes
    assert (index.name, index.table, index.columns) == ("by_name", "shop_orders", ("name",))
    assert world.plan(sql).steps == ()
    world.tables["orders"] = (ID, NAME, AGE)  # it stays when the source is looked into again
    grown = world.plan(sql)
    assert all(isinstance(step, ChangeInPlace) for step in grown.steps)
    assert world.catalog.get("shop_orders").definition.indexes == (index,)
    error = refusal(world.plan, SOURCE + "CREATE INDEX ON shop_order (name);")
    assert (error.code, error.location.line) == ("UNKNOWN_RELATION", 3)
    error = refusal(world.plan, SOURCE + "CREATE INDEX ON orders (name);")
    assert error.code == "UNKNOWN_RELATION"
