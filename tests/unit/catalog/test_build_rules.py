"""What a plan does when rules and tags change."""

import pytest
from tests.unit.catalog.world import ALL, CLICKS, HOME, LATEST, PEOPLE, VISITS, World, steps

from mainstem.catalog.plan import ChangeInPlace

RULED = CLICKS.replace("page STRING", "page STRING NOT NULL, CHECK (user <> '') ON VIOLATION drop")


def test_new_rules_are_taken_over_in_place_and_nothing_is_rebuilt():
    world = World()
    world.apply(ALL)
    plan = world.apply(RULED + HOME + VISITS + LATEST + PEOPLE)
    assert steps(plan) == [
        ("ChangeInPlace", "clicks"),
        ("ChangeInPlace", "home"),
        ("ChangeInPlace", "visits"),
        ("ChangeInPlace", "latest"),
    ]
    assert plan.steps[0].why == "rules changed (+page_not_null +check)"
    assert plan.steps[1].why == "input changed"
    changed = RULED.replace("ON VIOLATION drop", "ON VIOLATION fail").replace(" NOT NULL", "")
    plan = world.apply(changed + HOME + VISITS + LATEST + PEOPLE)
    assert {type(step) for step in plan.steps} == {ChangeInPlace}
    assert plan.steps[0].why == "rules changed (-page_not_null ~check)"
    assert world.catalog.get("clicks").definition.rules[0].action == "fail"


def test_another_condition_of_a_computed_table_judges_all_its_rows_anew():
    world = World()
    ruled = VISITS.replace("visits", "visits (CHECK (n > 1))")
    pages = "CREATE TABLE pages (CHECK (n < 9)) AS SELECT page, n FROM visits;"
    world.apply(CLICKS + ruled + pages)
    plan = world.apply(CLICKS + ruled.replace("> 1)", "> 1) ON VIOLATION drop") + pages)
    assert steps(plan) == [("ChangeInPlace", "visits")]
    plan = world.apply(CLICKS + ruled + pages.replace("n < 9", "n < 8"))
    assert steps(plan) == [("ChangeInPlace", "visits"), ("ChangeInPlace", "pages")]
    plan = world.apply(CLICKS + ruled.replace("n > 1", "n > 2") + pages)
    assert steps(plan)[0] == ("Rebuild", "visits")
    assert plan.steps[0].why == "rules changed (~check)"


@pytest.mark.parametrize(
    "same",
    [
        RULED.replace("CHECK (user <> '')", "CHECK (-- no empty names\n user\n <> '')"),
        RULED.replace("ON VIOLATION drop", "on violation DROP ROW"),
        RULED.replace("CHECK (user", "/* moved */\n  CHECK ( user"),
    ],
)
def test_layout_and_comments_of_a_rule_are_no_change(same):
    world = World()
    world.apply(RULED + VISITS)
    assert world.plan(same + VISITS).steps == ()


def test_a_tag_is_taken_over_in_place_and_its_readers_go_on():
    world = World()
    world.apply(ALL)
    tagged = CLICKS.replace("user STRING", "user STRING PII")
    plan = world.apply(tagged + HOME + VISITS + LATEST + PEOPLE)
    assert steps(plan) == [("ChangeInPlace", "clicks")]
    assert plan.steps[0].why == "PII tags changed (+user)"


def test_rules_are_looked_at_by_the_engine_when_they_change():
    world = World()
    world.apply(CLICKS)
    world.plan(RULED)
    assert world.analysed == ["clicks"]
