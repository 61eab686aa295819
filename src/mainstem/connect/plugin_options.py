"""Options of the connector `connect` that go to a plugin as they are, and which may not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mainstem.connect.carrier import LABEL
from mainstem.connect.debezium_common import NOTICES_TOPIC, SIGNALS_TOPIC
from mainstem.connect.spec import Field, FieldKind
from mainstem.errors import MainstemError
from mainstem.vocabulary import INTERNAL_PREFIX

PASSED_ON = "option."
OURS = "mainstem"
"""What names begin with that are for ourselves."""
_NAME = re.compile(r"[A-Za-z0-9._$-]+")
_RESERVED = frozenset(
    (
        *("name", "connector.class", "tasks.max", "topics", "topics.regex", LABEL),
        *(SIGNALS_TOPIC, NOTICES_TOPIC),
    )
)

CLASS = Field(
    "class",
    FieldKind.TEXT,
    "The class of the connector: one of a jar in the folder `plugins` of the project.",
    "org.apache.kafka.connect.file.FileStreamSourceConnector",
    required=True,
    place=True,
)
TASKS = Field(
    "tasks",
    FieldKind.INTEGER,
    "How many tasks it may have at most.",
    "2",
    default="1",
    least=1,
    most=1000,
)


def check_passed_on(options: Mapping[str, Any]) -> None:
    """Refuse what is ours to set, and topics of our own."""
    for name, value in options[PASSED_ON].items():
        problem = None
        if name in _RESERVED or name.startswith(OURS):
            problem = "Mainstem sets it itself"
        elif not _NAME.fullmatch(name):
            problem = "it has signs in its name that no setting of a plugin has"
        elif INTERNAL_PREFIX in value:
            problem = f"what begins with {INTERNAL_PREFIX} is not for a plugin"
        if problem is not None:
            raise MainstemError(
                "INVALID_OPTION",
                option=f"{PASSED_ON}{name}",
                value="...",
                problem=problem,
                advice="Leave it out.",
            )
