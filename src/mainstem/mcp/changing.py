"""Tools that change something: offered only with `--allow-changes`.

Python files of a plan are run by the engine, so `plan` is among them, though it changes nothing.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from mainstem.definitions.project import read_files
from mainstem.errors import MainstemError
from mainstem.mcp.tool import Arguments, Place, Tool

_MOST_RECORDS = 1_000


class ProduceArguments(Arguments):
    """What `produce` takes."""

    stream: Annotated[str, Field(min_length=1, description="A declared stream or table.")]
    rows: Annotated[
        list[dict[str, Any]],
        Field(min_length=1, max_length=_MOST_RECORDS, description="Columns of each record."),
    ]


class PlanArguments(Arguments):
    """What `plan` takes."""


class ApplyArguments(Arguments):
    """What `apply` takes."""

    digest: Annotated[str, Field(description="Of the plan that was looked at.")]
    revision: Annotated[int, Field(description="Of the same plan.")]
    lose_data: Annotated[
        bool, Field(description="Agree to steps that drop or rebuild something.")
    ] = False


class SwitchArguments(Arguments):
    """What `pause` and `resume` take."""

    name: Annotated[str, Field(min_length=1, max_length=200)]


def produce(place: Place, asked: ProduceArguments) -> dict[str, Any]:
    """Write records, all or none of them."""
    written = place.client.produce(asked.stream, asked.rows)
    return {
        "citation": f"{int(written)} written to {asked.stream}, up to {written.receipt}.",
        "written": int(written),
        "receipt": written.receipt,
    }


def plan(place: Place, _: PlanArguments) -> dict[str, Any]:
    """What the files of the project would change."""
    made = place.client.plan(_files(place))
    return {
        **{part: made[part] for part in ("changes", "digest", "revision", "text")},
        "loses_data": _losses(made),
    }


def apply(place: Place, asked: ApplyArguments) -> dict[str, Any]:
    """Carry out the plan that was looked at, and no other: the gateway compares digests."""
    files = _files(place)
    losses = _losses(place.client.plan(files))
    if losses and not asked.lose_data:
        raise MainstemError("LOSS_NOT_AGREED", what=", ".join(losses))
    return place.client.apply(files, asked.digest, asked.revision)


def pause(place: Place, asked: SwitchArguments) -> dict[str, Any]:
    """Stop a flow where it is."""
    return place.client.pause(asked.name)


def resume(place: Place, asked: SwitchArguments) -> dict[str, Any]:
    """Let it go on."""
    return place.client.resume(asked.name)


def _files(place: Place) -> list[dict[str, str]]:
    return [{"path": path, "text": text} for path, text in read_files(place.project.folder)]


def _losses(made: dict[str, Any]) -> list[str]:
    return [
        f"{step['step']} {step['entry']['definition']['name']}"
        for step in made["plan"]["steps"]
        if step["step"] in ("rebuild", "drop")
    ]


CHANGING = (
    Tool(
        "produce",
        "Write records",
        "Write records to a declared stream or table, all or none. The receipt can be given to the "
        "tool query as wait_for.",
        ProduceArguments,
        produce,
        changes=True,
    ),
    Tool(
        "plan",
        "Plan the project",
        "What the definitions in the project's files would change in the running platform. Nothing "
        "is changed; `apply` takes digest and revision.",
        PlanArguments,
        plan,
        changes=True,
    ),
    Tool(
        "apply",
        "Apply a plan",
        "Carry out a plan by its digest and revision. It is refused when files or catalog have "
        "changed since, and when it would drop or rebuild something without lose_data.",
        ApplyArguments,
        apply,
        changes=True,
        destructive=True,
    ),
    Tool(
        "pause",
        "Pause a flow",
        "Stop a flow, source or sink where it is; nothing is lost.",
        SwitchArguments,
        pause,
        changes=True,
    ),
    Tool(
        "resume",
        "Resume a flow",
        "Let a paused flow, source or sink go on where it stopped.",
        SwitchArguments,
        resume,
        changes=True,
    ),
)
