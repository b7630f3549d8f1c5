"""Builds the routes of one resource. The docstring of a handler is the documentation of its endpoint."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from postroad.model import caller
from postroad.services import context
from postroad.web import routing


@dataclass(frozen=True, slots=True)
class Resource:
    """What the routes of a resource share: the tag, and the patterns of path parameters."""

    tag: str
    path_patterns: Mapping[str, str] = field(default_factory=dict)

    def download(
        self, endpoint: str, handler: routing.Handler[context.Context], *, content_type: str, **options: Any
    ) -> routing.Route[context.Context]:
        """The route of a file, which `routing.attachment` returns."""
        headers = {"Content-Disposition": "Always `attachment`."}
        options.update(responses={200: bytes}, content_type=content_type, response_headers=headers)
        return self.route(endpoint, handler, **options)

    def route(
        self, endpoint: str, handler: routing.Handler[context.Context], **options: Any
    ) -> routing.Route[context.Context]:
        """The route of a method and path. By default GET requires `VIEW` and any other method `CHANGE`.

        The first line of the handler's docstring is the summary; the rest, if any, is the description.
        """
        method, path = endpoint.split()
        summary, _, description = (inspect.getdoc(handler) or "").partition("\n\n")
        options.setdefault("permission", caller.Permission.VIEW if method == "GET" else caller.Permission.CHANGE)
        options.setdefault("description", description.replace("\n", " "))
        return routing.Route(
            method=method,
            path=path,
            handler=handler,
            summary=summary.removesuffix("."),
            tag=self.tag,
            path_patterns=self.path_patterns,
            **options,
        )
