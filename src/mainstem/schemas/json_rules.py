"""What a JSON Schema refuses of what another one lets pass.

A reader can read what was written if every value that passes the writer's schema passes its own.
That is proved keyword by keyword, and where it cannot be proved it counts as a break. From this
follow the rules of open and closed content: a property that is added to a schema which let any
property pass may meet values that were never checked, and one that is taken away from a closed
schema is refused from then on. A default is a remark, so it does not make up for what is required.
"""

from __future__ import annotations

from typing import Final

from mainstem.schemas.breaks import MAX_BREAKS, Break
from mainstem.schemas.json_arrays import ARRAY_RULES
from mainstem.schemas.json_facts import key_of, parts_of
from mainstem.schemas.json_objects import OBJECT_RULES
from mainstem.schemas.json_parse import JsonSchema, inner
from mainstem.schemas.json_proof import Proof, Rule
from mainstem.schemas.json_scalars import SCALAR_RULES
from mainstem.schemas.json_unions import UNION_RULES

RULES: Final[dict[str, Rule]] = {**SCALAR_RULES, **ARRAY_RULES, **OBJECT_RULES, **UNION_RULES}


def json_breaks(reader: JsonSchema, writer: JsonSchema) -> list[Break]:
    """All breaks, in the order of the reader's keywords."""
    if (
        reader.draft is writer.draft
        and reader.schema.references == writer.schema.references
        and key_of(reader.document) == key_of(writer.document)
    ):
        return []
    if _is_dynamic(reader) or _is_dynamic(writer):
        reason = "an anchor that others may replace cannot be compared"
        return [Break("#", "NOT_COMPARABLE", reason)]
    found = Proof(RULES).refused(parts_of([writer.root]), reader.root, "#")
    return found[:MAX_BREAKS]


def _is_dynamic(parsed: JsonSchema) -> bool:
    """Whether a dynamic reference could lead elsewhere than where it seems to."""
    todo, anchors = [parsed.document], 0
    while todo:
        contents = todo.pop()
        todo += [item for _, item in inner(contents)]
        if isinstance(contents, dict):
            anchors += "$dynamicAnchor" in contents or contents.get("$recursiveAnchor") is True
    return anchors > (0 if parsed.schema.references else 1)
