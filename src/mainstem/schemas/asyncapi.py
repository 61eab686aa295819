"""The AsyncAPI document (3.0) of a project: its topics, and what it reads from and writes to them.

The application that the document describes is the project: it receives what is declared, and sends
what its flows make. Streams that share a topic are messages of one channel.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from yaml import safe_dump

from mainstem.definitions.model import Definition, Kind
from mainstem.definitions.options import milliseconds
from mainstem.definitions.patterns import MANY, ONE
from mainstem.schemas.asyncapi_messages import BINDING_VERSION, message
from mainstem.schemas.model import Schema

_NOT_IN_A_KEY = re.compile(r"[^A-Za-z0-9._-]")
_SECURE = ("ssl", "sasl_ssl")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where the project runs; nothing of it is secret."""

    name: str
    version: str = "1.0.0"
    servers: str = ""
    """The brokers as host:port, comma separated; empty: not known."""
    protocol: str = "plaintext"
    """Kafka's name for how they are talked to."""
    registry: str = ""
    """The schema registry's URL, without user and password."""


def asyncapi(
    definitions: Iterable[Definition],
    where: Surroundings,
    schema_of: Callable[[Definition], Schema | None],
    personal: Mapping[str, Collection[str]],
) -> dict[str, Any]:
    """The document; `schema_of` gives the schema of a definition whose values have one.

    `personal` names columns with personal data, by object, all in lower case.
    """
    own = (definition for definition in definitions if definition.kind is not Kind.SOURCE)
    known = sorted(own, key=lambda definition: definition.name.lower())
    topics: dict[str, list[Definition]] = {}
    for definition in known:
        topics.setdefault(definition.topic, []).append(definition)
    channels: dict[str, Any] = {}
    operations: dict[str, Any] = {}
    for topic, sharing in sorted(topics.items()):
        key = _free(sharing[0].name if sharing[0].pattern else topic, channels)
        channels[key] = _channel(sharing)
        for definition in sharing:
            action = "send" if definition.derived else "receive"
            name = _key(definition.name)
            operations[f"{action}_{name}"] = {
                "action": action,
                "channel": {"$ref": f"#/channels/{key}"},
                "summary": _summary(definition),
                "messages": [{"$ref": f"#/channels/{key}/messages/{name}"}],
            }
    messages = {
        _key(d.name): message(d, schema_of(d), personal.get(d.name.lower(), ())) for d in known
    }
    servers = _servers(where)
    return {
        "asyncapi": "3.0.0",
        "info": {"title": where.name, "version": where.version},
        "defaultContentType": "application/json",
        **({"servers": servers} if servers else {}),
        "channels": channels,
        "operations": operations,
        "components": {"messages": messages},
    }


def printed(document: dict[str, Any], *, yaml: bool) -> str:
    """The document's text."""
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    if not yaml:
        return text
    # read again, so that no two parts are the same object, which YAML would write as a reference
    return safe_dump(json.loads(text), sort_keys=False, allow_unicode=True, width=120)


def _servers(where: Surroundings) -> dict[str, Any]:
    hosts = [host.strip() for host in where.servers.split(",") if host.strip()]
    secure = where.protocol.lower() in _SECURE
    server: dict[str, Any] = {"protocol": "kafka-secure" if secure else "kafka"}
    if where.registry:
        binding = {"schemaRegistryUrl": where.registry, "schemaRegistryVendor": "confluent"}
        server["bindings"] = {"kafka": {**binding, "bindingVersion": BINDING_VERSION}}
    names = ["kafka"] if len(hosts) == 1 else [f"kafka{n}" for n in range(1, len(hosts) + 1)]
    return {name: {"host": host, **server} for name, host in zip(names, hosts, strict=True)}


def _channel(sharing: Sequence[Definition]) -> dict[str, Any]:
    first = sharing[0]
    messages = {_key(d.name): {"$ref": f"#/components/messages/{_key(d.name)}"} for d in sharing}
    if first.pattern is not None:
        address, parameters = _parameters(first.topic)
        return {"address": address, "messages": messages, "parameters": parameters}
    binding: dict[str, Any] = {"topic": first.topic}
    if first.partitions is not None:
        binding["partitions"] = first.partitions
    settings = _topic_settings(first)
    if settings:
        binding["topicConfiguration"] = settings
    bindings = {"kafka": {**binding, "bindingVersion": BINDING_VERSION}}
    return {"address": first.topic, "messages": messages, "bindings": bindings}


def _topic_settings(definition: Definition) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if definition.kind is Kind.TABLE:
        settings["cleanup.policy"] = ["compact"]
    if definition.retention is not None:
        settings["retention.ms"] = milliseconds(definition.retention) or -1
    return settings


def _parameters(pattern: str) -> tuple[str, dict[str, Any]]:
    """The address of a wildcard stream's topics, and what the parts in braces are."""
    parts: list[str] = []
    parameters: dict[str, Any] = {}
    for number, part in enumerate(pattern.split("."), 1):
        if part in (ONE, MANY) or part.startswith("{"):
            name = _free(part.strip("{}") if part.startswith("{") else f"part{number}", parameters)
            about = "One part of the topic's name" + (", or more" if part == MANY else "")
            parameters[name] = {"description": about}
            parts.append(f"{{{name}}}")
        else:
            parts.append(part)
    return ".".join(parts), parameters


def _summary(definition: Definition) -> str:
    if definition.derived:
        return f"The {definition.noun} {definition.name}, made by a flow."
    if definition.source is not None:
        return f"The {definition.kind} {definition.name}, which comes with {definition.source}."
    return f"The {definition.kind} {definition.name}, written by others."


def _key(name: str) -> str:
    return _NOT_IN_A_KEY.sub("_", name)


def _free(name: str, taken: Iterable[str]) -> str:
    key, known = _key(name), set(taken)
    while key in known:
        key += "_"
    return key
