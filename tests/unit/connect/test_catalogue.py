"""What every connector has to keep to, whoever describes it."""

import pytest

from mainstem.connect.captures import capture_of
from mainstem.connect.catalogue import named, spec_of, specs
from mainstem.connect.on_spark import runs_on_spark
from mainstem.connect.secrets import has_reference
from mainstem.connect.spec import FieldKind, Role
from mainstem.connect.targets.target import module_of
from mainstem.definitions.connections import CONNECTOR, OF_SINKS, OF_SOURCES
from mainstem.definitions.model import Create
from mainstem.definitions.parse import parse_one
from mainstem.engine.sources.looks import LOOKS
from mainstem.engine.sources.run import RUNS
from mainstem.errors import MainstemError

ALL = list(specs().values())
FIELDS = [(spec, field) for spec in ALL for field in spec.fields]


def test_there_are_connectors():
    assert {spec.role for spec in ALL} == set(Role)


@pytest.mark.parametrize("spec", ALL, ids=lambda spec: f"{spec.role}-{spec.name}")
def test_a_connector_can_be_made_as_its_example_says(spec):
    statement = parse_one(spec.statement)
    assert isinstance(statement, Create)
    connection = statement.definition.captures or statement.definition.target
    assert connection.connector == spec.name
    spec.validate(dict(connection.options))


@pytest.mark.parametrize("spec", ALL, ids=lambda spec: f"{spec.role}-{spec.name}")
def test_a_connector_is_described_and_runs(spec):
    assert spec.paragraphs[0].endswith((".", "CSV."))
    names = [field.name for field in spec.fields]
    assert len(set(names)) == len(names)
    own = OF_SOURCES if spec.role is Role.SOURCE else OF_SINKS
    assert not {CONNECTOR, *own} & set(names)
    if runs_on_spark(spec.name) and spec.role is Role.SOURCE:
        assert spec.name in LOOKS
        assert spec.name in RUNS
    elif spec.role is Role.SOURCE:
        assert callable(capture_of(spec.name).look)
    else:
        assert callable(module_of(spec.name).check)


@pytest.mark.parametrize(("spec", "field"), FIELDS, ids=lambda part: getattr(part, "name", ""))
def test_every_option_is_told_with_an_example(spec, field):
    assert field.doc.endswith(".")
    assert field.name == field.name.lower()
    assert field.name.isidentifier()
    assert not (field.required and field.default is not None)
    required = {f.name: f.example for f in spec.fields if f.required}
    spec.validate(required | {field.name: field.example})
    if field.default is not None:
        spec.validate(required | {field.name: field.default})


@pytest.mark.parametrize(("spec", "field"), FIELDS, ids=lambda part: getattr(part, "name", ""))
def test_no_option_takes_a_secret_in_plain_text(spec, field):
    required = {f.name: f.example for f in spec.fields if f.required}
    if field.secret:
        assert has_reference(field.example)
        plain = "hunter2"
    elif field.kind is FieldKind.URL:
        plain = "http://me:hunter2@host/"
    else:
        return
    with pytest.raises(MainstemError) as caught:
        spec.validate(required | {field.name: plain})
    assert caught.value.code == "SECRET_IN_PLAIN"


def test_an_unknown_connector_names_its_neighbour():
    with pytest.raises(MainstemError) as caught:
        spec_of(Role.SINK, "postgress")
    assert caught.value.code == "UNKNOWN_CONNECTOR"
    assert 'Did you mean "postgres"?' in caught.value.hint
    assert "postgres-cdc" not in caught.value.hint
    with pytest.raises(MainstemError):
        named("oracle")
    assert [spec.role for spec in named("postgres-cdc")] == [Role.SOURCE]
