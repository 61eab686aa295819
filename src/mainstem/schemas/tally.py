"""How many records pass, and why the others do not: counted by place and rule, with samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mainstem.schemas.json_values import Refusal

MOST_REASONS = 200
MOST_SAMPLES = 5
_LONGEST = 300
_OTHERS = ("", "others")
"""Where what is beyond all bounds is counted."""

Place = tuple[str, int, int]
"""Topic, partition and offset of a record."""


@dataclass
class Reason:
    """One way to fail; the text is that of its first record."""

    reason: str
    count: int = 0
    samples: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Tally:
    """What a trial found. Records without a value, which delete a row, are not judged."""

    passed: int = 0
    failed: int = 0
    """Records; one may fail for several reasons."""
    deletions: int = 0
    reasons: dict[tuple[str, str], Reason] = field(default_factory=dict)
    """By path, with [] for the places of lists, and rule."""

    def refuse(self, refusals: Iterable[Refusal], place: Place) -> None:
        """One record that does not pass, and all that is against it."""
        self.failed += 1
        topic, partition, offset = place
        for refusal in refusals:
            text = refusal.reason[:_LONGEST]
            found = self._reason((pattern(refusal.path), refusal.rule), text)
            found.count += 1
            if len(found.samples) < MOST_SAMPLES:
                where = {"topic": topic, "partition": partition, "offset": offset}
                found.samples.append({**where, "path": exact(refusal.path), "reason": text})

    def add(self, other: Tally) -> None:
        """What was counted elsewhere."""
        self.passed += other.passed
        self.failed += other.failed
        self.deletions += other.deletions
        for key, theirs in other.reasons.items():
            mine = self._reason(key, theirs.reason)
            mine.count += theirs.count
            mine.samples += theirs.samples[: MOST_SAMPLES - len(mine.samples)]

    def document(self) -> dict[str, Any]:
        """As JSON, the most frequent reason first."""
        found = sorted(self.reasons.items(), key=lambda item: (-item[1].count, item[0]))
        return {
            "passed": self.passed,
            "failed": self.failed,
            "deletions": self.deletions,
            "reasons": [
                {
                    "path": path,
                    "rule": rule,
                    "reason": reason.reason,
                    "count": reason.count,
                    "samples": reason.samples,
                }
                for (path, rule), reason in found
            ],
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Tally:
        """What `document` gave."""
        reasons = {
            (one["path"], one["rule"]): Reason(one["reason"], one["count"], one["samples"])
            for one in document["reasons"]
        }
        return cls(document["passed"], document["failed"], document["deletions"], reasons)

    def _reason(self, key: tuple[str, str], text: str) -> Reason:
        if key not in self.reasons and len(self.reasons) >= MOST_REASONS:
            key, text = _OTHERS, "other reasons"
        return self.reasons.setdefault(key, Reason(text))


def pattern(path: tuple[str | int, ...]) -> str:
    """A path that is the same for all items of a list."""
    text = "".join("[]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def exact(path: tuple[str | int, ...]) -> str:
    """A path in a value, such as `lines[2].price`; nothing for the value as a whole."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")
