"""Transforms tried on sample records: the engine does what it would do in the flow of a sink."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Response
from pydantic import BaseModel, ConfigDict, Field

from mainstem.catalog.entry import Catalog
from mainstem.definitions.model import Create, Definition, Kind
from mainstem.definitions.parse import parse_one
from mainstem.definitions.transform_clause import parse_transforms
from mainstem.definitions.transforms import Transform
from mainstem.errors import MainstemError
from mainstem.gateway.changes import unknown
from mainstem.gateway.services import Services, services
from mainstem.vocabulary import SourceLocation

router = APIRouter(tags=["definitions"])
MOST_RECORDS = 1_000
MOST_CHARACTERS = 500_000
_JSON = "application/json"
_SAMPLE = "sample"
_DECLARED = f"CREATE STREAM {_SAMPLE} (\n"


class TransformTrialRequest(BaseModel):
    """Records, what they are of, and what is to be done to them."""

    model_config = ConfigDict(extra="forbid")

    records: list[str] = Field(max_length=MOST_RECORDS, description="Each a JSON object.")
    transforms: str | None = Field(
        None, description="A list as in TRANSFORM (...); without it that of the sink."
    )
    sink: str | None = Field(None, description="Its list, and what it reads.")
    object: str | None = Field(None, description="A stream or table that has the columns.")
    columns: str | None = Field(None, description="Columns as in CREATE STREAM.")


class Transformed(BaseModel):
    """What became of a record."""

    record: int = Field(description="Its number, from 1 on.")
    result: Literal["passed", "left out", "refused", "bad"]
    cause: str | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class TransformTrial(BaseModel):
    """The columns behind the transforms, and the records."""

    columns: list[dict[str, str]]
    records: list[Transformed]


@router.post("/v1/transforms/trial", response_model=TransformTrial)
def trial(at: Annotated[Services, Depends(services)], request: TransformTrialRequest) -> Response:
    """What becomes of each record: `passed`, `left out` by a filter, `refused` or `bad`.

    Nothing is written. A record that is refused would go to the quarantine; one that is bad does
    not hold the columns. In the place of a salt its reference is hashed.
    """
    if sum(map(len, request.records)) > MOST_CHARACTERS:
        problem = f"the records have more than {MOST_CHARACTERS} characters: try fewer of them"
        raise MainstemError("BAD_REQUEST", problem=problem)
    catalog = at.catalog()
    sink = None if request.sink is None else _found(catalog, request.sink)
    transforms = _transforms(request, sink)
    found = at.engine.try_transforms(_sample(catalog, request, sink), transforms, request.records)
    # rows are texts with all their digits, and go out as they are
    records = ",".join(map(_document, found["records"]))
    columns = json.dumps(found["columns"])
    return Response(f'{{"columns":{columns},"records":[{records}]}}', media_type=_JSON)


def _document(record: dict[str, Any]) -> str:
    rows = ",".join(f'"{side}":{record[side] or "null"}' for side in ("before", "after"))
    others = {name: record[name] for name in ("record", "result", "cause")}
    return f"{json.dumps(others)[:-1]},{rows}}}"


def _transforms(request: TransformTrialRequest, sink: Definition | None) -> tuple[Transform, ...]:
    if request.transforms is None:
        if sink is None or not sink.transforms:
            problem = "it has no transforms: give some" if sink else "give transforms, or a sink"
            raise MainstemError("BAD_REQUEST", problem=problem)
        return sink.transforms
    return parse_transforms(request.transforms)


def _sample(
    catalog: Catalog, request: TransformTrialRequest, sink: Definition | None
) -> Definition:
    """What the records are of: always JSON, whatever the format of the object is."""
    if request.columns is not None:
        return _declared(request.columns)
    name = request.object
    if name is None and sink is not None and sink.query is not None:
        name = sink.query.inputs[0]
    if name is None:
        problem = "say which columns the records have: an object, a sink, or columns"
        raise MainstemError("BAD_REQUEST", problem=problem)
    found = _found(catalog, name)
    if found.kind is Kind.SOURCE:
        problem = f"{found.name} is a source: name one of its streams or tables"
        raise MainstemError("BAD_REQUEST", problem=problem)
    return Definition(
        name=found.name,
        kind=Kind.STREAM,
        topic=found.topic if found.pattern is None else found.name,
        location=found.location,
        text="",
        columns=found.columns,
        key=found.key if found.kind is Kind.TABLE else (),
    )


def _declared(columns: str) -> Definition:
    try:
        made = parse_one(f"{_DECLARED}{columns}\n)", "<columns>")
    except MainstemError as error:
        place = error.location
        if place is not None and place.line > 1:
            error.location = replace(place, line=place.line - 1)
        raise
    assert isinstance(made, Create)
    return replace(made.definition, location=SourceLocation("<columns>", 1, 1), text="")


def _found(catalog: Catalog, name: str) -> Definition:
    entry = catalog.get(name)
    if entry is None:
        raise unknown(catalog, name)
    return entry.definition
