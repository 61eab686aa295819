"""The application: all routes behind the front, and the life of the services."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from mainstem import __version__
from mainstem.gateway import kafka_app, problems
from mainstem.gateway.front import Front
from mainstem.gateway.read_only import ReadOnly
from mainstem.gateway.registry_app import RegistryApp
from mainstem.gateway.routes import (
    aggregates,
    asyncapi,
    backfills,
    cloud_events,
    connector_kinds,
    connectors,
    groups,
    health,
    hooks,
    live,
    objects,
    page,
    plan,
    project,
    quarantine,
    schema_diff,
    sinks,
    sql,
    status,
    streams,
    subscribe,
    tables,
    topics,
    transforms,
    trials,
)
from mainstem.gateway.services import Services

_DESCRIPTION = (
    "Streams, tables and queries of a Mainstem project. Errors are problem documents (RFC 9457)"
    " with a stable code as their title."
)


def create_app(services: Services, hosts: Iterable[str] = ()) -> Front:
    """The gateway as an ASGI application; `hosts` are names, beside localhost, it answers to."""

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        await services.open()
        try:
            yield
        finally:
            await services.close()

    app = FastAPI(
        title="Mainstem",
        version=__version__,
        description=_DESCRIPTION,
        lifespan=life,
        docs_url=None,  # FastAPI's pages load scripts from another host; ours is in routes/page
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.services = services
    problems.install(app)
    for part in (
        sql, subscribe, live, objects, asyncapi, backfills, connectors, connector_kinds, sinks,
        hooks, plan, project, schema_diff, streams, aggregates, cloud_events, topics, groups,
        trials, quarantine, transforms, status,
        health, page,
    ):  # fmt: skip
        app.include_router(part.router)
    kafka = kafka_app.kafka_app(services)
    app.mount(kafka_app.PREFIX, kafka)
    registry = RegistryApp(services, app)
    app.openapi = lambda: _openapi(app, registry, kafka)  # type: ignore[method-assign]
    shown = tables.TableRows(services, registry)
    read_only = services.settings.gateway.read_only
    return Front(ReadOnly(shown) if read_only else shown, services.metrics, hosts)


def _openapi(app: FastAPI, registry: RegistryApp, kafka: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            routes=app.routes,
        )
        document["paths"].update(tables.OPENAPI)
        for inner in (registry.openapi(), kafka_app.openapi(kafka)):
            document["paths"].update(inner["paths"])
            document["components"]["schemas"].update(inner.get("components", {}).get("schemas", {}))
        app.openapi_schema = document
    return app.openapi_schema
