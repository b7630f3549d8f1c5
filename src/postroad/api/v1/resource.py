"""Builds the routes of one resource. The docstring of a handler is the documentation of its endpoint."""

import inspect
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from postroad.model import caller
from postroad.services import context
from postroad.web import routing

# The scope that an API key needs for everything below `/v1/<name>`, unless a route says otherwise; None: no key has it.
SCOPES: Final[Mapping[str, caller.Scope | None]] = {
    "account": caller.Scope.STATISTICS,
    "api-keys": caller.Scope.TEAM,
    "audit-log": caller.Scope.TEAM,
    "auth": None,
    "credentials": caller.Scope.TEAM,
    "domains": caller.Scope.DOMAINS,
    "event-schemas": caller.Scope.WEBHOOKS,
    "inbox": caller.Scope.READ,
    "messages": caller.Scope.READ,
    "operator": caller.Scope.OPERATOR,
    # It decides who is an owner, which is for people to decide.
    "sso": None,
    "statistics": caller.Scope.STATISTICS,
    "suppressions": caller.Scope.SUPPRESSIONS,
    "team": caller.Scope.TEAM,
    "templates": caller.Scope.TEMPLATES,
    "test-email": caller.Scope.SEND,
    "webhook": caller.Scope.WEBHOOKS,
    "webhook-listeners": caller.Scope.WEBHOOKS,
    "webhooks": caller.Scope.WEBHOOKS,
}


class Resource(msgspec.Struct, frozen=True):
    """What the routes of a resource share: the tag, and the patterns of path parameters.

    `summaries` replace those of handlers that it has in common with another resource.
    """

    tag: str
    path_patterns: Mapping[str, str] = msgspec.field(default_factory=dict)
    summaries: Mapping[str, str] = msgspec.field(default_factory=dict)

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
        summary = summary.removesuffix(".")
        options.setdefault("permission", caller.Permission.VIEW if method == "GET" else caller.Permission.CHANGE)
        options.setdefault("scope", SCOPES[path.split("/")[2]])
        options.setdefault("description", description.replace("\n", " "))
        return routing.Route(
            method=method,
            path=path,
            handler=handler,
            summary=self.summaries.get(summary, summary),
            tag=self.tag,
            path_patterns=self.path_patterns,
            **options,
        )
