"""Builds the routes of `/v1/operator`: each requires the role or the scope, and acts for the installation.

Both are added here, so that no handler can forget them. Callers without them are refused before a handler runs, and so
learn nothing about the ids in a path.
"""

from typing import Any

from postroad.api.v1 import resource
from postroad.model import caller
from postroad.services import context
from postroad.web import routing

Route = routing.Route[context.Context]


def route(
    described: resource.Resource, endpoint: str, handler: routing.Handler[context.Context], **options: Any
) -> Route:
    """The route of a method and path below `/v1/operator`."""

    async def operate(ctx: context.Context, request: routing.Request) -> routing.Response:
        return await handler(context.as_operator(ctx), request)

    operate.__doc__ = handler.__doc__
    return described.route(endpoint, operate, permission=caller.Permission.OPERATE, **options)
