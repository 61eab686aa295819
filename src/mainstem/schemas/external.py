"""A schema registry elsewhere, by its URL: Confluent's API from the client's side.

What an id or a version stands for never changes, so it is asked for once; whatever else, always.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, Self, TypeVar
from urllib.parse import quote

import httpx2

from mainstem.config import SchemasSettings
from mainstem.errors import MainstemError
from mainstem.schemas.compatibility import Level
from mainstem.schemas.model import Reference, Registered, Schema
from mainstem.schemas.registry_errors import error_of
from mainstem.schemas.topic_records import Key, KeyType, contents, read_schema

T = TypeVar("T")

_JSON = "application/vnd.schemaregistry.v1+json"
_ACCEPT = f"{_JSON}, application/json"
_TIMEOUT_SECONDS = 10.0
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_REMEMBERED = 10_000
_ANY = "-"
_AWAY = (408, 429, 502, 503, 504)
"""What a server says that may soon answer."""
_INCOMPATIBLE = (409, 40901)
"""Older and newer registries differ."""
_MALFORMED, _NOT_PERMITTED = 42201, 42205
_SOME_LEVEL = "of compatibility"
"""Which one, only the registry's own text says."""

Refusals = dict[int, Callable[..., MainstemError]]
"""What an error number of the registry means for a request."""


class ExternalRegistry:
    """A `SchemaSource` that asks another server. Redirects are not followed: they may lead away."""

    def __init__(
        self,
        url: str,
        user: str = "",
        password: str = "",
        *,
        timeout: float = _TIMEOUT_SECONDS,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self._url = url.rstrip("/")
        self._client = httpx2.Client(
            auth=(user, password) if user or password else None,
            headers={"Accept": _ACCEPT},
            timeout=timeout,
            transport=transport,
            # a proxy of the environment never leads to a server on this machine
            trust_env=httpx2.URL(self._url).host not in _LOOPBACK,
        )
        self._known: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()

    @classmethod
    def from_settings(cls, settings: SchemasSettings, timeout: float = _TIMEOUT_SECONDS) -> Self:
        """The one that the project names."""
        password = settings.password.get_secret_value()
        return cls(settings.registry, settings.user, password, timeout=timeout)

    def close(self) -> None:
        """End its connections; safe to call twice."""
        self._client.close()

    def by_id(self, id: int) -> Schema:
        """The schema that an id stands for."""

        def ask() -> Schema:
            unknown = partial(MainstemError, "SCHEMA_UNKNOWN", what=f"with id {id}")
            answer = self._object("GET", f"/schemas/ids/{id}", {40403: unknown})
            return self._read(_ANY, 1, {**answer, "id": id}).schema

        return self._once(id, ask)

    def latest(self, subject: str) -> Registered:
        """The newest version of a subject."""
        return self._version(subject, "latest")

    def version(self, subject: str, version: int) -> Registered:
        """One version of a subject."""
        return self._once((subject, version), lambda: self._version(subject, str(version)))

    def versions(self, subject: str, *, fresh: bool = True) -> list[int]:
        """The versions of a subject, the oldest first; they are always asked for."""
        answer = self._ask("GET", f"/subjects/{_quoted(subject)}/versions", _missing(subject))
        if not isinstance(answer, list) or not all(isinstance(item, int) for item in answer):
            raise self._strange("a list of versions")
        return sorted(answer)

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> Registered:
        """The schema as a version of the subject: the one that it is already, or a new one."""
        path, body = f"/subjects/{_quoted(subject)}", contents(schema)
        asked = f"normalize={str(normalize).lower()}"

        def breaks(problem: str) -> MainstemError:
            return error_of(_INCOMPATIBLE[-1], problem) or MainstemError(
                "SCHEMA_INCOMPATIBLE", subject=subject, level=_SOME_LEVEL, problem=problem
            )

        refusals = _missing(subject) | dict.fromkeys(_INCOMPATIBLE, breaks)
        self._ask("POST", f"{path}/versions?{asked}", refusals, body)
        # the registration may say the id alone
        answer = self._object("POST", f"{path}?{asked}", _missing(subject), body)
        return self._read(subject, answer.get("version"), answer)

    def check(self, subject: str, schema: Schema) -> list[str]:
        """What registering the schema would break."""
        path = f"/compatibility/subjects/{_quoted(subject)}/versions?verbose=true"
        answer = self._object("POST", path, _missing(subject), contents(schema))
        if answer.get("is_compatible") is True:
            return []
        messages = answer.get("messages")
        said = [str(message) for message in messages] if isinstance(messages, list) else []
        return said or ["the registry says that it is not compatible, and not why"]

    def level(self, subject: str | None = None) -> Level:
        """What applies to a subject, be it its own or that of all; or that of all."""
        path = "/config" if subject is None else f"/config/{_quoted(subject)}?defaultToGlobal=true"
        answer = self._object("GET", path, {})
        try:
            return Level(str(answer.get("compatibilityLevel")))
        except ValueError:
            raise self._strange("a compatibility level") from None

    def resolve(self, reference: Reference) -> Schema:
        """What a reference stands for; a version that was deleted still does."""

        def ask() -> Schema:
            path = f"/subjects/{_quoted(reference.subject)}/versions/{reference.version}"
            unknown = partial(MainstemError, "SCHEMA_REFERENCE_UNKNOWN", name=reference.name)
            answer = self._object(
                "GET", f"{path}?deleted=true", dict.fromkeys((40401, 40402), unknown)
            )
            return self._read(reference.subject, reference.version, answer).schema

        return self._once(("reference", reference.subject, reference.version), ask)

    # -- inside

    def _version(self, subject: str, version: str) -> Registered:
        unknown = partial(MainstemError, "SCHEMA_VERSION_UNKNOWN", subject=subject, version=version)
        path = f"/subjects/{_quoted(subject)}/versions/{version}"
        answer = self._object("GET", path, {**_missing(subject), 40402: unknown})
        return self._read(subject, answer.get("version"), answer)

    def _once(self, what: Hashable, ask: Callable[[], T]) -> T:
        with self._lock:
            if what in self._known:
                self._known.move_to_end(what)
                known: T = self._known[what]
                return known
        found = ask()
        with self._lock:
            self._known[what] = found
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return found

    def _object(
        self, method: str, path: str, refusals: Refusals, body: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        answer = self._ask(method, path, refusals, body)
        if not isinstance(answer, dict):
            raise self._strange("an object")
        return answer

    def _ask(
        self, method: str, path: str, refusals: Refusals, body: dict[str, Any] | None = None
    ) -> Any:
        headers = {} if body is None else {"Content-Type": _JSON}
        try:
            answer = self._client.request(method, f"{self._url}{path}", json=body, headers=headers)
            document = answer.json() if answer.content else None
        except httpx2.HTTPError as error:
            problem = type(error).__name__
            raise MainstemError("REGISTRY_UNREACHABLE", url=self._url, problem=problem) from None
        except ValueError:
            raise self._strange(f"JSON, but status {answer.status_code}") from None
        if answer.is_success:
            return document
        if answer.status_code in _AWAY:
            problem = f"status {answer.status_code}"
            raise MainstemError("REGISTRY_UNREACHABLE", url=self._url, problem=problem)
        said = document if isinstance(document, dict) else {}
        number, message = said.get("error_code"), str(said.get("message") or answer.status_code)
        if number in refusals:
            raise refusals[number](problem=message)
        raise self._refused(number, message)

    def _refused(self, number: Any, message: str) -> MainstemError:
        ours = error_of(number, message)
        if ours is not None:
            return ours
        if number == _MALFORMED:
            return MainstemError("SCHEMA_MALFORMED", type="", where=self._url, problem=message)
        if number == _NOT_PERMITTED:
            advice = f"Ask {self._url}."
            return MainstemError("REGISTRY_NOT_PERMITTED", problem=message, advice=advice)
        return MainstemError("REGISTRY_FAILED", url=self._url, problem=message)

    def _read(self, subject: str, version: Any, answer: dict[str, Any]) -> Registered:
        if not isinstance(version, int):
            raise self._strange("a schema and its version")
        try:
            return read_schema(Key(KeyType.SCHEMA, subject, version), answer).registered
        except (ValueError, TypeError) as error:
            raise self._strange(f"a schema ({error})") from None

    def _strange(self, expected: str) -> MainstemError:
        problem = f"it did not answer with {expected}"
        return MainstemError("REGISTRY_FAILED", url=self._url, problem=problem)


def _quoted(subject: str) -> str:
    return quote(subject, safe="")


def _missing(subject: str) -> Refusals:
    return {40401: partial(MainstemError, "SUBJECT_UNKNOWN", subject=subject)}
