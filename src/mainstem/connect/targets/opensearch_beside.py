"""An index of OpenSearch that is filled beside another, and takes its name as an alias."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

from mainstem.connect.targets.beside import not_possible
from mainstem.connect.targets.opensearch import META, MISSING, index_of, requests_to, url_of
from mainstem.connect.targets.rest import Requests, place_of, said
from mainstem.connect.targets.target import Shape, refused

_KEPT = ("number_of_shards", "number_of_replicas", "analysis", "mapping", "max_result_window")
"""Settings that the new index has from the old one; others are the old one's own."""


def place(written: Mapping[str, str], name: str, generation: int) -> dict[str, str]:
    """Another index."""
    return {"index": f"{written.get('index') or name.lower()}-mainstem-{generation}"}


def check(options: Mapping[str, Any], shape: Shape, sink: str) -> None:
    """Refuses the name of several indexes."""
    with closing(requests_to(options)) as requests:
        found = _behind(requests, options, shape)
    if len(found) > 1:
        names = ", ".join(sorted(found))
        raise not_possible(sink, f"{index_of(options, shape)} stands for several indexes: {names}")


def prepare(options: Mapping[str, Any], beside: Mapping[str, Any], shape: Shape) -> None:
    """An index with the mapping that the other one has, but for what is noted of topics in it."""
    with closing(requests_to(options)) as requests:
        if _behind(requests, beside, shape):
            return
        body: dict[str, Any] = {}
        for old in _behind(requests, options, shape).values():
            mappings = dict(old.get("mappings", {}))
            mappings["_meta"] = {k: v for k, v in mappings.get("_meta", {}).items() if k != META}
            settings = old.get("settings", {}).get("index", {})
            kept = {name: settings[name] for name in _KEPT if name in settings}
            body = {"mappings": mappings, "settings": {"index": kept}}
        made = requests.send("PUT", url_of(beside, index_of(beside, shape)), json=body)
        if not made.is_success and "resource_already_exists" not in made.text:
            raise refused(place_of(options["url"]), said(made))


def switch(
    options: Mapping[str, Any],
    beside: Mapping[str, Any],
    shape: Shape,
    sink: str,
    generation: int,
) -> None:
    """Lets the name stand for the new index and removes the old one: one act of OpenSearch.

    Crash behind it: the name stands for the new index already.
    """
    name, new = index_of(options, shape), index_of(beside, shape)
    with closing(requests_to(options)) as requests:
        old = _behind(requests, options, shape)
        if set(old) == {new}:
            return
        actions: list[dict[str, Any]] = [{"remove_index": {"index": each}} for each in old]
        actions.append({"add": {"index": new, "alias": name}})
        done = requests.send("POST", url_of(options, "_aliases"), json={"actions": actions})
        if not done.is_success:
            raise refused(place_of(options["url"]), said(done))


def discard(beside: Mapping[str, Any], shape: Shape) -> None:
    """Deletes the index."""
    with closing(requests_to(beside)) as requests:
        gone = requests.send("DELETE", url_of(beside, index_of(beside, shape)), missing=True)
        if not gone.is_success and gone.status_code != MISSING:
            raise refused(place_of(beside["url"]), said(gone))


def _behind(
    requests: Requests, options: Mapping[str, Any], shape: Shape
) -> dict[str, dict[str, Any]]:
    """The indexes that a name stands for, with what they are; none when it stands for nothing."""
    response = requests.send("GET", url_of(options, index_of(options, shape)), missing=True)
    if response.status_code == MISSING:
        return {}
    if not response.is_success:
        raise refused(place_of(options["url"]), said(response))
    found: dict[str, dict[str, Any]] = response.json()
    return found
