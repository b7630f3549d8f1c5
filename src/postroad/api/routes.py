"""The routes of the API of an account, in the order of its documentation. Health routes are added by the role."""

from typing import Final

from postroad import context
from postroad.api import emails
from postroad.api.v1 import (
    account,
    api_keys,
    audit_log,
    auth,
    credentials,
    domains,
    message_checks,
    messages,
    sample_send,
    sso,
    statistics,
    suppressions,
    team,
    templates,
    webhook_listeners,
    webhook_schemas,
    webhooks,
)
from postroad.web import routing

ROUTES: Final[tuple[routing.Route[context.Context], ...]] = (
    *emails.ROUTES,
    *auth.ROUTES,
    *account.ROUTES,
    *messages.ROUTES,
    *message_checks.ROUTES,
    *sample_send.ROUTES,
    *statistics.ROUTES,
    *credentials.ROUTES,
    *api_keys.ROUTES,
    *domains.ROUTES,
    *templates.ROUTES,
    *suppressions.ROUTES,
    *webhooks.FIRST_ROUTES,
    *webhooks.ROUTES,
    *webhook_listeners.ROUTES,
    *webhook_schemas.ROUTES,
    *team.ROUTES,
    *sso.ROUTES,
    *audit_log.ROUTES,
)
