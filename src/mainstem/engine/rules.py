"""Rules of a definition over its rows: which are broken, and what that means.

They are expressions in the plan that decodes the records. A rule is broken when its condition is
false, or cannot be computed for the record (a division by zero, say); as in SQL, NULL breaks none.
Only the record decides, never the clock: whoever reads it again comes to the same result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mainstem.definitions.model import Definition, OnViolation, Rule
from mainstem.definitions.rules import told
from mainstem.engine.attempt import attempt
from mainstem.engine.spark_errors import complaint, query_error
from mainstem.engine.values import schema_of
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column

STOPS = "RULE_STOPS_FLOW"
_ROWS = "_mainstem_rules"
_CONDITION_TYPES = ("boolean", "void")


def judged(definition: Definition) -> Definition:
    """The definition as its readers judge records by it: a flow has judged what it writes."""
    return replace(definition, rules=()) if definition.derived else definition


def broken(definition: Definition) -> SparkColumn:
    """The names of the rules that a row breaks; NULL when there are none."""
    if not definition.rules:
        return F.lit(None).cast("array<string>")
    tests = [F.when(_breaks(rule), F.lit(rule.name)) for rule in definition.rules]
    names = F.array_compact(F.array(*tests))
    return F.when(F.size(names) > 0, names)


def verdict(definition: Definition) -> dict[str, SparkColumn]:
    """The column behind key and value of a row that is to be written, where there are rules."""
    return {"broken": broken(definition)} if definition.rules else {}


def refusal(definition: Definition, place: SparkColumn | None) -> SparkColumn:
    """Not NULL for a row that breaks one of the rules.

    With the `place` of the record (a struct of topic, partition and offset), a rule that says
    `fail` fails whoever reads the row; it does so whatever else the row breaks.
    """
    found: Any = F
    if place is not None:
        for rule in _of(definition, OnViolation.FAIL):
            found = found.when(_breaks(rule), _stop(definition, rule, place))
    for rule in definition.rules:
        if place is None or rule.action is not OnViolation.FAIL:
            found = found.when(_breaks(rule), F.lit(""))
    made: SparkColumn = found
    return made


def is_dropped(definition: Definition, names: SparkColumn) -> SparkColumn:
    """True when all the rules that a row breaks (`broken`) say `drop`."""
    listed = [F.lit(rule.name) for rule in _of(definition, OnViolation.DROP)]
    return F.size(F.array_except(names, F.array(*listed).cast("array<string>"))) == 0


def check_rules(session: SparkSession, definition: Definition, columns: Sequence[Column]) -> None:
    """Refuse a rule that Spark cannot compute of these columns, or that is no condition."""
    if not definition.rules:
        return
    session.createDataFrame([], schema_of(columns)).createOrReplaceTempView(_ROWS)
    for rule in definition.rules:
        query = rule.condition
        try:
            [found] = session.sql(f"{query.text} FROM {_ROWS}").schema.fields
        except PySparkException as error:
            refused = query_error(error, query)
            if refused.location == query.location:  # Spark does not say where
                refused.location = rule.location
            raise refused from None
        kind = found.dataType.simpleString()
        if kind not in _CONDITION_TYPES:
            raise MainstemError(
                "INVALID_RULE",
                location=rule.location,
                rule=rule.name,
                problem=f"it is a {kind.upper()}, not a condition",
                advice="Compare it with something: a rule is true or false for a record.",
            )


def check_rows(rows: DataFrame, definition: Definition) -> None:
    """Refuse rows that are to be written and break a rule."""
    if not definition.rules:
        return
    wrong = rows.select(broken(definition).alias("names"))
    found = wrong.filter(F.col("names").isNotNull()).head()
    if found is not None:
        raise MainstemError(
            "RULE_BROKEN", name=definition.name, rules=told(definition, found.names)
        )


def has(definition: Definition, action: OnViolation) -> bool:
    """True when a rule says that."""
    return bool(_of(definition, action))


def _of(definition: Definition, action: OnViolation) -> list[Rule]:
    return [rule for rule in definition.rules if rule.action is action]


def _breaks(rule: Rule) -> SparkColumn:
    """True for a row that breaks the rule, else false."""
    # a record that makes the expression fail would fail the flow each time it is read
    kept = attempt(F.expr(f"NOT (({rule.text}\n) <=> false)"))
    return ~F.coalesce(kept, F.lit(False))


def _stop(definition: Definition, rule: Rule, place: SparkColumn) -> SparkColumn:
    params = F.struct(
        F.lit(definition.name).alias("name"),
        F.lit(rule.name).alias("rule"),
        F.lit(rule.shown).alias("condition"),
        *(place.getField(part).alias(part) for part in ("topic", "partition", "offset")),
    )
    return complaint(STOPS, params)
