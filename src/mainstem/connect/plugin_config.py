"""The configuration of a plugin that a definition names by its class.

Its own options go to it as they are written, one with a secret as a reference. Around them stands
what makes its records those of a stream, or gives it the rows of a sink. All records of a source go
to the topic of its stream, whatever the plugin calls it: it writes to nobody else's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mainstem.connect.capture import Captured
from mainstem.connect.carrier import Around, Offsets, PutAway
from mainstem.connect.listening.captures import typed_stream
from mainstem.connect.listening.column_list import columns_of, read_columns
from mainstem.connect.listening.options import invalid, stream_of
from mainstem.connect.plugin_options import OURS, PASSED_ON, check_passed_on
from mainstem.connect.plugins import NONE_ALLOWED, AllowedPlugins
from mainstem.connect.spec import Role
from mainstem.definitions.model import Format
from mainstem.vocabulary import INTERNAL_PREFIX, Column

TEXT = (Column("value", "string"),)
"""The stream of a source without columns: what the plugin writes, as a text."""
_JSON = "org.apache.kafka.connect.json.JsonConverter"
_STRING = "org.apache.kafka.connect.storage.StringConverter"
_BETWEEN = f"{INTERNAL_PREFIX}plugin."
_READ = "topics"
_TRANSFORM = "org.apache.kafka.connect.transforms."


def between_topic(flow: str) -> str:
    """Where the rows of a sink wait for its plugin; `flow` has the sink's generation in it."""
    return f"{_BETWEEN}{flow}"


def rows_topic(config: Mapping[str, str]) -> dict[str, bool]:
    """The same by the configuration of a sink's plugin; a source's has none of its own."""
    topic = config.get(_READ, "")
    return {topic: True} if topic.startswith(_BETWEEN) else {}


@dataclass(frozen=True, slots=True)
class PluginCapture:
    """A `Capture`: nothing is asked, the options say what comes."""

    allowed: AllowedPlugins = NONE_ALLOWED

    def look(self, name: str, options: Mapping[str, Any]) -> tuple[Captured, ...]:
        """The stream of its records."""
        self.allowed.check(options["class"])
        check_passed_on(options)
        if options["columns"] is not None:
            return typed_stream(name, options, columns_of(read_columns(options["columns"])))
        for option in ("key", "event_time"):
            if options[option] is not None:
                raise invalid(option, str(options[option]), "it needs the option columns", "'id'")
        return (stream_of(name, options, TEXT, format_=Format.RAW),)


def plugin_config(
    name: str,
    options: Mapping[str, Any],
    tables: Sequence[str],
    put_away: PutAway,
    around: Around,
) -> dict[str, str]:
    """The configuration for Connect's REST API: a `Configure`."""
    own = {
        key: put_away(key, value) if f"{PASSED_ON}{key}" in around.secret else value
        for key, value in options[PASSED_ON].items()
    }
    [topic] = around.topics
    made = _sink(topic, options) if around.role is Role.SINK else _source(topic, options)
    steps = [step for step in (own.pop("transforms", ""), made.pop("transforms", "")) if step]
    return {
        **made,
        **own,
        **({"transforms": ",".join(steps)} if steps else {}),
        "connector.class": options["class"],
        "tasks.max": str(options.get("tasks", 1)),
    }


def _sink(topic: str, options: Mapping[str, Any]) -> dict[str, str]:
    with_schemas = options["schemas"]
    return {
        _READ: topic,
        # without a schema, JSON would not tell a text from what it is of
        "key.converter": _JSON if with_schemas else _STRING,
        "value.converter": _JSON,
        "value.converter.schemas.enable": "true" if with_schemas else "false",
    }


def _source(topic: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Values as the stream has them; the key that is asked for, and the topic."""
    made: dict[str, str] = {"key.converter": _STRING, "value.converter": _STRING}
    if options["columns"] is not None:
        made |= {
            "value.converter": _JSON,
            "value.converter.schemas.enable": "false",
            "value.converter.decimal.format": "NUMERIC",
        }
    steps: dict[str, dict[str, str]] = {}
    key: Sequence[str] = options["key"] or ()
    if key:
        steps["Key"] = {"type": f"{_TRANSFORM}ValueToKey", "fields": ",".join(key)}
    if len(key) == 1:
        steps["KeyText"] = {"type": f"{_TRANSFORM}ExtractField$Key", "field": key[0]}
    elif key:
        made |= {"key.converter": _JSON, "key.converter.schemas.enable": "false"}
    steps["Topic"] = {"type": f"{_TRANSFORM}RegexRouter", "regex": ".*", "replacement": topic}
    for step, settings in steps.items():
        made |= {f"transforms.{OURS}{step}.{name}": text for name, text in settings.items()}
    return made | {"transforms": ",".join(f"{OURS}{step}" for step in steps)}


@dataclass(frozen=True, slots=True)
class PluginState:
    """How far it has come, as far as that can be told of any plugin."""

    confirmed: str | None = None
    held_bytes: int = 0
    problem: str | None = None


def plugin_state(name: str, options: Mapping[str, Any], offsets: Offsets) -> PluginState:
    """Of a sink how many rows it has taken of each partition; a source's own words are its own."""
    taken = taken_records(offsets())
    told = (f"{p}:{next_}" for places in taken.values() for p, next_ in sorted(places.items()))
    return PluginState(", ".join(told) or None)


def taken_records(offsets: Sequence[Mapping[str, Any]]) -> dict[str, dict[int, int]]:
    """By topic and partition: before which offset a sink has taken all records."""
    found: dict[str, dict[int, int]] = {}
    for one in offsets:
        place, at = one.get("partition") or {}, (one.get("offset") or {}).get("kafka_offset")
        if "kafka_topic" in place and at is not None:
            found.setdefault(str(place["kafka_topic"]), {})[int(place["kafka_partition"])] = int(at)
    return found
