"""Resend's API: its routes, and the API key in `Authorization: Bearer`."""

from typing import Final

from postroad.api import extension_api
from postroad.protocol.text import http_values
from postroad.web import routing
from postroad_resend import api_keys, domains, emails, error_shape, received_emails, suppressions, templates, webhooks


def credential(headers: routing.Headers) -> str:
    """The value of `Authorization`."""
    value = headers.get(http_values.AUTHORIZATION)
    if not value or value.strip().lower() == b"bearer":
        raise extension_api.MissingKey("Authorization: missing; send 'Bearer' with an API key of Postroad")
    return value.decode("latin-1")


API: Final = extension_api.HttpApi(
    service="Resend",
    prefix="/compat/resend",
    routes=(
        *received_emails.ROUTES,
        *emails.ROUTES,
        *templates.ROUTES,
        *domains.ROUTES,
        *api_keys.ROUTES,
        *webhooks.ROUTES,
        *suppressions.ROUTES,
    ),
    credential=credential,
    error_body=error_shape.shape,
)
