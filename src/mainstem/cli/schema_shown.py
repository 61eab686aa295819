"""What the schema commands print: breaks and whom they touch, differences, a new version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from mainstem.cli.context import Session
from mainstem.cli.output import Format, write
from mainstem.cli.pipeline import count
from mainstem.cli.schema_trial import Tried, show_tried

if TYPE_CHECKING:
    from mainstem.schemas.compatibility import Level
    from mainstem.schemas.diff import Change
    from mainstem.schemas.model import Registered
    from mainstem.schemas.verdict import Broken, Verdict

_BREAK_COLUMNS = ("file", "subject", "version", "direction", "path", "kind", "reason", "used_by")
_CHANGE_COLUMNS = ("path", "action", "what", "before", "after", "breaking")


@dataclass(frozen=True)
class Touched:
    """A break, and who uses what it is about; None when that cannot be told."""

    broken: Broken
    used_by: list[str] | None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**self.broken.as_dict(), "used_by": self.used_by}


@dataclass(frozen=True)
class Checked:
    """One file that was checked."""

    file: str
    verdict: Verdict
    breaks: list[Touched]
    consumers: list[str] | None
    """Groups of other programs that read the topic; None when that cannot be told."""
    tried: Tried | None = None
    """What the last records say, if they were asked."""

    @property
    def refused(self) -> bool:
        """True when a record would not pass."""
        return self.tried is not None and self.tried.failed > 0

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "file": self.file,
            "subject": self.verdict.subject,
            "level": self.verdict.level.value,
            "latest": self.verdict.latest,
            "compatible": not self.breaks,
            "breaks": [one.as_dict() for one in self.breaks],
            "consumers": self.consumers,
            "records": None if self.tried is None else self.tried.as_dict(),
        }


def show_checked(session: Session, checked: Sequence[Checked], tried: Sequence[Tried] = ()) -> None:
    """The breaks of all files on stdout; which files are fine is a message."""
    if session.form() is not Format.TABLE:
        rows = [
            [{"file": one.file, "subject": one.verdict.subject, **each.as_dict()}[column]
             for column in _BREAK_COLUMNS]
            for one in checked
            for each in one.breaks
        ]  # fmt: skip
        document = [one.as_dict() for one in checked]
        document += [
            {"file": one.file, "definition": one.found["name"], "records": one.as_dict()}
            for one in tried
        ]
        write(session.form(), _BREAK_COLUMNS, rows, document=document)
        return
    for one in checked:
        its = one.verdict
        if one.breaks:
            typer.echo(f"{one.file}: breaks the rule {its.level} of {its.subject}")
        elif its.latest is None:
            session.say(f"{one.file}: the first version of {its.subject}")
        else:
            session.say(
                f"{one.file}: may follow version {its.latest} of {its.subject} ({its.level})"
            )
        for each in one.breaks:
            typer.echo(f"  {_place(each.broken)}{each.broken.reason}{_kind(each.broken)}")
            typer.echo(f"    used by: {_users(each.used_by)}")
        if one.breaks:
            typer.echo(f"  consumer groups: {_consumers(one.consumers)}")
        if one.tried is not None:
            show_tried(session, one.tried)
    for definition in tried:
        show_tried(session, definition)


def show_changes(
    session: Session, changes: Sequence[Change], level: Level, names: tuple[str, str]
) -> None:
    """The differences of two schemas, and whether the newer may follow the older."""
    from mainstem.schemas.diff import render

    breaking = sum(change.breaking(level) for change in changes)
    if session.form() is Format.TABLE:
        if changes:
            typer.echo(render(changes, level))
        told = f"{breaking} of them breaking" if breaking else "compatible"
        said = count(len(changes), "change") if changes else "no changes"
        session.say(f"{names[0]} -> {names[1]}: {said}, {told} under {level}")
        return
    documents = [change.as_dict(level) for change in changes]
    document = {
        "old": names[0],
        "new": names[1],
        "level": level.value,
        "compatible": not breaking,
        "changes": documents,
    }
    rows = [[one[column] for column in _CHANGE_COLUMNS] for one in documents]
    write(session.form(), _CHANGE_COLUMNS, rows, document=document)


def show_registered(session: Session, new: Registered) -> None:
    """What a schema has become."""
    if session.form() is Format.TABLE:
        session.say(f"{new.subject}: version {new.version}, id {new.id}")
        return
    document = {"subject": new.subject, "version": new.version, "id": new.id}
    write(session.form(), list(document), [list(document.values())], document=document)


def _place(broken: Broken) -> str:
    if broken.version is None:
        return ""  # the registry's own words say it, if anything does
    return f"version {broken.version}, {broken.direction}: {broken.path}: "


def _kind(broken: Broken) -> str:
    return f" ({broken.kind})" if broken.kind else ""


def _consumers(names: list[str] | None) -> str:
    if names is None:
        return "not known"
    told = "of which fields they use nothing is known"
    return f"{', '.join(names)}; {told}" if names else "none has committed an offset"


def _users(names: list[str] | None) -> str:
    if names is None:
        return "not known"
    return ", ".join(names) if names else "nobody in the catalog"
