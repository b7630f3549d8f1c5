"""Postmark's API: its routes, and the API key in `X-Postmark-Server-Token` or `X-Postmark-Account-Token`.

Its packages write some paths with a slash at the end, so both forms exist.
"""

import dataclasses
from typing import Final

from postroad.api import extension_api
from postroad.model.people import callers
from postroad.web import routing
from postroad_postmark import (
    bounces,
    domains,
    emails,
    error_shape,
    messages,
    server,
    suppressions,
    templates,
    webhooks,
)

TOKENS: Final = (b"x-postmark-server-token", b"x-postmark-account-token")
# Postmark's token for requests that send nothing.
TEST_TOKEN: Final = b"POSTMARK_API_TEST"


def credential(headers: routing.Headers) -> str:
    """The API key as the value of `Authorization` that it stands for."""
    token = next((value for name in TOKENS if (value := headers.get(name))), None)
    if not token:
        raise extension_api.MissingKey("X-Postmark-Server-Token: missing; send an API key of Postroad")
    if token == TEST_TOKEN:
        raise extension_api.MissingKey(
            "X-Postmark-Server-Token: POSTMARK_API_TEST belongs to no account; use a test key of Postroad (pr_test_…), "
            "whose messages are never sent"
        )
    return f"Bearer {token.decode('latin-1')}"


def _slashed(route: extension_api.Route) -> extension_api.Route:
    return dataclasses.replace(route, path=f"{route.path}/")


# Paths that would otherwise be taken for those with an id.
_UNSUPPORTED: Final = (
    extension_api.route("GET /bounces/tags", extension_api.refuse, scope=callers.Scope.READ),
    extension_api.route("PUT /templates/push", extension_api.refuse, scope=callers.Scope.TEMPLATES),
)
ROUTES: Final = (
    *emails.ROUTES,
    *messages.ROUTES,
    *bounces.ROUTES,
    *suppressions.ROUTES,
    *templates.ROUTES,
    *server.ROUTES,
    *domains.ROUTES,
    *webhooks.ROUTES,
    *_UNSUPPORTED,
)
API: Final = extension_api.HttpApi(
    service="Postmark",
    prefix="/compat/postmark",
    key_field="X-Postmark-Server-Token",
    key_headers=TOKENS,
    routes=(*ROUTES, *map(_slashed, ROUTES)),
    credential=credential,
    error_body=error_shape.shape,
)
