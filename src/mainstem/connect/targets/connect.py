"""Rows of a sink for a plugin of Kafka Connect: in a topic of their own, exactly once.

They go there as those of the sink `kafka` do, so what a crash means is told there. They stay until
the plugin has taken them (`connect/care.py`), however long that is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mainstem.connect.plugin_config import between_topic
from mainstem.connect.plugin_options import check_passed_on
from mainstem.connect.plugin_schema import before_rows, before_texts
from mainstem.connect.targets.kafka import KEYED, KafkaTarget, form
from mainstem.connect.targets.target import Part, Shape
from mainstem.log.admin import TopicSpec
from mainstem.log.producer import Outgoing

__all__ = ["GUARANTEE", "KEYED", "check", "form", "open_target"]

GUARANTEE = (
    "exactly once to the topic that the plugin takes rows from; from there as the plugin does it, "
    "at least once"
)
_KEPT = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}


def check(options: Mapping[str, Any], shape: Shape) -> None:
    """Whether the options may go to a plugin; Kafka Connect itself says what it thinks of them."""
    check_passed_on(options)
    if options["schemas"]:
        before_rows(shape.columns)


def open_target(options: Mapping[str, Any], shape: Shape) -> PluginTarget:
    """The target for one task."""
    ours = {"servers": None, "topic": "rows", "keyed_by": None, "value": None, "headers": None}
    return PluginTarget({**options, **ours}, shape)


class PluginTarget(KafkaTarget):
    """One part of a batch: one transaction."""

    def __init__(self, options: Mapping[str, Any], shape: Shape) -> None:
        super().__init__(options, shape)
        self._before: tuple[bytes, bytes] | None = None
        """What keys and rows begin with."""
        if options["schemas"]:
            key = [column for column in shape.columns if column.name in shape.key]
            keys = before_rows(key) if shape.deletes else before_texts()
            self._before = keys, before_rows(shape.columns)

    def open(self, part: Part) -> None:
        """Connects; the topic is that of the sink's generation."""
        self._routes = replace(self._routes, topic=between_topic(part.flow))
        super().open(part)

    def _outgoing(self, id_: str | None, row: str | None, time: int | None) -> Outgoing:
        made = super()._outgoing(id_, row, time)
        if self._before is None:
            return made
        key = made.key
        if key is not None and not self._shape.deletes:
            key = json.dumps(key.decode()).encode()
        keys, rows = self._before
        return replace(
            made,
            key=None if key is None else keys + key + b"}",
            value=None if made.value is None else rows + made.value + b"}",
        )

    def _spec(self, topic: str) -> TopicSpec:
        return TopicSpec(topic, 1, config=_KEPT)
