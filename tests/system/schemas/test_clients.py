"""Clients of others, unchanged against our registry: Confluent's own for Python, and kcat."""

from __future__ import annotations

import json
import shutil
import subprocess
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.api.metric_pb2 import MetricDescriptor
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

if TYPE_CHECKING:
    from tests.system.schemas.conftest import Gateway

pytestmark = pytest.mark.kafka
LATEST = {"auto.register.schemas": False, "use.latest.version": True}


@pytest.fixture
def client(gateway: Gateway) -> SchemaRegistryClient:
    return connect(gateway)


@pytest.fixture
def context() -> SerializationContext:
    """The value of a topic that no other test has."""
    return SerializationContext(f"topic-{uuid.uuid4().hex}", MessageField.VALUE)


def connect(gateway: Gateway) -> SchemaRegistryClient:
    """A client that knows nothing yet."""
    return SchemaRegistryClient({"url": gateway.registry})


def subject_of(context: SerializationContext) -> str:
    return f"{context.topic}-value"


def avro(**fields: Any) -> str:
    members = [
        {"name": name, "type": "string", **({} if default is None else {"default": default})}
        for name, default in fields.items()
    ]
    return json.dumps({"type": "record", "name": "Click", "namespace": "web", "fields": members})


def json_schema(*names: str) -> str:
    properties = {name: {"type": "string"} for name in names}
    closed = {"type": "object", "properties": properties, "additionalProperties": False}
    return json.dumps({"title": "Click", **closed})


def proto(*names: str) -> Any:
    """A message class with text fields of these names, as protoc would make it."""
    file = descriptor_pb2.FileDescriptorProto(name="click.proto", package="web", syntax="proto3")
    message = file.message_type.add(name="Click")
    for number, name in enumerate(names, 1):
        message.field.add(name=name, number=number, type="TYPE_STRING", label="LABEL_OPTIONAL")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("web.Click"))


Serialize = Callable[[Any, SerializationContext], bytes]


def writer(kind: str, client: SchemaRegistryClient, *names: str, **conf: Any) -> Serialize:
    """Takes a dictionary; fields behind the first have a default where the type has such."""
    match kind:
        case "avro":
            text = avro(**{name: "" if index else None for index, name in enumerate(names)})
            return AvroSerializer(client, text, conf=conf)
        case "json":
            return JSONSerializer(json_schema(*names), client, conf=conf)
        case _:
            made = proto(*names)
            inner = ProtobufSerializer(made, client, conf=conf)
            return lambda row, context: inner(made(**row), context)


def reader(kind: str, client: SchemaRegistryClient, *names: str) -> Callable[..., Any]:
    """Gives a dictionary; Avro by the writer's own schema."""
    match kind:
        case "avro":
            return AvroDeserializer(client)
        case "json":
            return JSONDeserializer(json_schema(*names), schema_registry_client=client)
        case _:
            inner = ProtobufDeserializer(proto(*names), schema_registry_client=client)

            def read(data: bytes, context: SerializationContext) -> dict[str, str]:
                message = inner(data, context)
                return {name: getattr(message, name) for name in names}

            return read


@pytest.mark.parametrize("kind", ["avro", "json", "protobuf"])
def test_written_and_read(gateway: Gateway, context: SerializationContext, kind: str) -> None:
    """Registered on the way; a second version is, too; each record is read by its own id."""
    one, two = connect(gateway), connect(gateway)
    old = writer(kind, one, "user")({"user": "a"}, context)
    new = writer(kind, two, "user", "page")({"user": "b", "page": "/"}, context)
    assert one.get_versions(subject_of(context)) == [1, 2]
    ids = [int.from_bytes(data[1:5], "big") for data in (old, new)]
    assert ids[0] != ids[1]
    read = reader(kind, connect(gateway), "user", "page")
    assert read(new, context) == {"user": "b", "page": "/"}
    assert {name: value for name, value in read(old, context).items() if value} == {"user": "a"}
    again = writer(kind, connect(gateway), "user")({"user": "a"}, context)
    assert again == old, "the schema that is there keeps its id"
    assert one.get_versions(subject_of(context)) == [1, 2]


@pytest.mark.parametrize("kind", ["avro", "json", "protobuf"])
def test_the_latest_version_is_used(
    gateway: Gateway, context: SerializationContext, kind: str
) -> None:
    with pytest.raises(SchemaRegistryError) as raised:
        writer(kind, connect(gateway), "user", **LATEST)({"user": "a"}, context)
    assert raised.value.error_code == 40401
    registering = connect(gateway)
    writer(kind, registering, "user")({"user": "a"}, context)
    writer(kind, registering, "user", "page")({"user": "a", "page": "/"}, context)
    latest = registering.get_latest_version(subject_of(context))
    data = writer(kind, connect(gateway), "user", **LATEST)({"user": "c"}, context)
    assert int.from_bytes(data[1:5], "big") == latest.schema_id
    found = reader(kind, connect(gateway), "user", "page")(data, context)
    assert found["user"] == "c"


def test_protobuf_with_imports(gateway: Gateway, context: SerializationContext) -> None:
    """What the file imports is registered under subjects of its own, with slashes in them."""
    metric = MetricDescriptor(name="requests", unit="1", launch_stage=4)
    metric.labels.add(key="path", description="of the request")
    data = ProtobufSerializer(MetricDescriptor, connect(gateway))(metric, context)
    client = connect(gateway)
    assert "google/api/label.proto" in client.get_subjects()
    its = client.get_latest_version(subject_of(context))
    assert {ref.name for ref in its.schema.references} >= {"google/api/label.proto"}
    read = ProtobufDeserializer(MetricDescriptor, schema_registry_client=client)
    assert read(data, context) == metric
    used = ProtobufSerializer(MetricDescriptor, connect(gateway), LATEST)(metric, context)
    assert used == data


def test_avro_with_references(client: SchemaRegistryClient, context: SerializationContext) -> None:
    user = f"user-{uuid.uuid4().hex}"
    client.register_schema(user, Schema(avro(name=None).replace('"Click"', '"User"'), "AVRO"))
    reference = SchemaReference("web.User", user, 1)
    text = '{"type":"record","name":"Visit","fields":[{"name":"by","type":"web.User"}]}'
    data = AvroSerializer(client, Schema(text, "AVRO", [reference]))({"by": {"name": "a"}}, context)
    assert AvroDeserializer(client)(data, context) == {"by": {"name": "a"}}
    with pytest.raises(SchemaRegistryError) as raised:
        client.delete_subject(user)
    assert raised.value.error_code == 42206
    assert client.get_referenced_by(user, 1) == [int.from_bytes(data[1:5], "big")]


def test_json_with_references(client: SchemaRegistryClient, context: SerializationContext) -> None:
    user = f"user-{uuid.uuid4().hex}"
    client.register_schema(user, Schema('{"type":"string","minLength":2}', "JSON"))
    text = '{"type":"object","properties":{"by":{"$ref":"user.json"}}}'
    schema = Schema(text, "JSON", [SchemaReference("user.json", user, 1)])
    data = JSONSerializer(schema, client)({"by": "ab"}, context)
    read = JSONDeserializer(schema, schema_registry_client=client)
    assert read(data, context) == {"by": "ab"}


def test_a_break_is_refused(gateway: Gateway, context: SerializationContext) -> None:
    write = AvroSerializer(connect(gateway), avro(user=None))
    write({"user": "a"}, context)
    with pytest.raises(SchemaRegistryError) as raised:
        AvroSerializer(connect(gateway), avro(user=None, page=None))(
            {"user": "a", "page": "/"}, context
        )
    assert (raised.value.http_status_code, raised.value.error_code) == (409, 40901)
    assert "Click.page" in raised.value.error_message


def test_the_client_itself(gateway: Gateway) -> None:
    client = connect(gateway)
    subject = f"odd/ö {uuid.uuid4().hex}"
    one, two = Schema(avro(a=None), "AVRO"), Schema(avro(a=None, b=None), "AVRO")
    id = client.register_schema(subject, one)
    assert client.get_schema(id).schema_str == one.schema_str
    assert client.register_schema(subject, Schema(f" {one.schema_str}", "AVRO")) == id
    assert subject in client.get_subjects()
    assert client.lookup_schema(subject, one).version == 1
    assert client.get_version(subject, 1).schema_id == id
    assert not client.test_compatibility(subject, two)
    assert not client.test_compatibility_all_versions(subject, two)
    assert client.set_compatibility(subject, "NONE") == {"compatibility": "NONE"}
    assert client.get_compatibility(subject) == "NONE"
    assert client.test_compatibility(subject, two)
    client.register_schema(subject, two, normalize_schemas=True)
    assert client.get_latest_version(subject).version == 2
    assert client.update_mode(subject, "READONLY") == client.get_mode(subject) == "READONLY"
    with pytest.raises(SchemaRegistryError) as raised:
        client.delete_subject(subject)
    assert raised.value.error_code == 42205
    client.delete_mode(subject)
    assert client.delete_version(subject, 1) == 1
    assert client.delete_subject(subject) == [2]
    assert client.delete_subject(subject, permanent=True) == [1, 2]
    with pytest.raises(SchemaRegistryError) as raised:
        connect(gateway).get_latest_version(subject)
    assert raised.value.error_code == 40401


def test_the_gateway_dies(gateway: Gateway, context: SerializationContext) -> None:
    """Behind the answer a schema is in the log."""
    data = AvroSerializer(connect(gateway), avro(user=None))({"user": "a"}, context)
    gateway.kill()
    gateway.start()
    assert AvroDeserializer(connect(gateway))(data, context) == {"user": "a"}


def kcat_reads_avro() -> bool:
    """Debian's is built without it."""
    program = shutil.which("kcat")
    told = program and subprocess.run([program, "-V"], capture_output=True, text=True, check=False)
    return bool(told) and "Avro" in told.stdout + told.stderr


@pytest.mark.skipif(not kcat_reads_avro(), reason="no kcat that is built with Avro")
def test_kcat_reads_what_the_gateway_writes(gateway: Gateway) -> None:
    base = gateway.registry.removesuffix("/registry")
    name = f"kcat_{uuid.uuid4().hex}"
    made = f"{name} (user STRING, n BIGINT, tags ARRAY<STRING>) WITH (format = 'avro')"
    rows = [{"user": "ä", "n": 2**60, "tags": ["a", "b"]}, {"user": None, "n": None, "tags": []}]
    with httpx2.Client(base_url=base, timeout=60, trust_env=False) as http:
        http.post("/v1/sql", json={"sql": f"CREATE STREAM {made}"}).raise_for_status()
        body = {"records": [{"value": row} for row in rows]}
        http.post(f"/v1/streams/{name}/records", json=body).raise_for_status()
        read = ["kcat", "-C", "-q", "-e", "-b", gateway.servers, "-t", name, "-f", "%s\n"]
        read += ["-s", "value=avro", "-r", gateway.registry]
        found = subprocess.run(read, capture_output=True, text=True, check=True, timeout=120)
        http.post("/v1/sql", json={"sql": f"DROP STREAM {name}"}).raise_for_status()
    lines = [json.loads(line) for line in found.stdout.splitlines()]
    tags = [{"string": "a"}, {"string": "b"}]  # Avro's own JSON tells the branch of a union
    first = {"user": {"string": "ä"}, "n": {"long": 2**60}, "tags": {"array": tags}}
    nothing = {"user": None, "n": None, "tags": {"array": []}}
    assert sorted(lines, key=str) == sorted([first, nothing], key=str)
