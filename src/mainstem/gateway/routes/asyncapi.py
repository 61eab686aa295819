"""The AsyncAPI document of what is running."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request, Response

from mainstem.catalog.personal import personal
from mainstem.gateway.registry_app import PREFIX
from mainstem.gateway.services import Services, services
from mainstem.schemas.asyncapi import Surroundings, asyncapi, printed

router = APIRouter(tags=["definitions"])
At = Annotated[Services, Depends(services)]
_CONTENT = {"json": "application/json", "yaml": "application/yaml"}


@router.get(
    "/v1/asyncapi",
    response_class=Response,
    responses={200: {"content": {name: {} for name in _CONTENT.values()}}},
)
def document(
    at: At,
    request: Request,
    format: Annotated[Literal["json", "yaml"], Query(description="Of the text.")] = "json",
    version: Annotated[str, Query(max_length=100, description="Of the interface.")] = "1.0.0",
) -> Response:
    """The AsyncAPI document (3.0) of the project: topics, messages, who sends and who receives."""
    own = str(request.base_url).rstrip("/") + PREFIX.rstrip("/")
    where = Surroundings(
        at.settings.name,
        version,
        at.connection.servers,
        at.connection.protocol,
        at.settings.schemas.registry or own,
    )
    catalog = at.catalog()
    definitions = (entry.definition for entry in catalog.entries.values())
    made = asyncapi(definitions, where, at.schemas.described, personal(catalog))
    return Response(printed(made, yaml=format == "yaml"), media_type=_CONTENT[format])
