"""Every sensitive route needs a confirmation: the tables name routes that exist, and no such route is missing.

What is about secrets, people, factors or the end of a domain, and every download, is in a table or, with the reason, in
`HARMLESS`.
"""

import re
from collections.abc import Iterable

import pytest

from postroad import config, context
from postroad.api import authentication
from postroad.api import routes as api_routes
from postroad.api.operator import routes as operator_routes
from postroad.dashboard import application
from postroad.services.operations import operator_jobs, operator_state
from postroad.web import routing
from tests.dashboard import browser_client

DANGEROUS = re.compile(
    r"^GET .*(/export|/raw|/request|/attachments/.*|\.csv)$"
    r"|^(POST|PUT|PATCH|DELETE) .*/(api-keys|keys|credentials|team|sso|operators|profile)\b"
    r"|^(POST|PUT|PATCH|DELETE) .*/(view-as|close|recovery-link|rotate|rotate-key|rotate-secret)\b"
    r"|^(POST|PUT|PATCH) (/v1)?/(welcome/)?webhooks?(/{webhook}(/secret|/settings)?)?$"
    r"|^(DELETE /v1/domains/|POST /domains/.*/remove|PATCH /v1/account$)"
)
HARMLESS = {
    # They end something that could do harm, and must be quick.
    "DELETE /v1/api-keys/{id}",
    "DELETE /v1/credentials/{id}",
    "POST /credentials/{id}/revoke",
    "POST /keys/{id}/revoke",
    "POST /profile/sessions/end-others",
    "POST /profile/sessions/{id}/end",
    "POST /team/{id}/sessions/{session}/end",
    "POST /operator/view-as/end",
    # They ask for the password, or a code, themselves.
    "POST /profile/password",
    "POST /profile/security/recovery-codes",
    "POST /profile/security/totp",
    "POST /profile/security/totp/confirm",
    "POST /profile/security/totp/remove",
    # They give nothing away.
    "POST /profile/notices",
    "POST /profile/time-zone",
    # The interface promises what they answer to a login token.
    "POST /v1/webhook/rotate-secret",
    "PUT /v1/webhook",
}


def labels(routes: Iterable[routing.Route[context.Context]]) -> set[str]:
    return {f"{route.method} {route.path}" for route in routes if route.permission is not None}


def pages() -> set[str]:
    return labels(application.routes(browser_client.build_site(config.load(environment={}, overrides={}))))


def endpoints() -> set[str]:
    state = operator_state.OperatorState(operator_jobs.Jobs(browser_client.quiet_log()))
    return labels([*api_routes.ROUTES, *operator_routes.build(state)])


def test_the_tables_name_routes_that_exist() -> None:
    assert application.STEP_UP_ROUTES - pages() == set()
    assert authentication.STEP_UP_ROUTES - endpoints() == set()


def test_no_dangerous_route_is_missing() -> None:
    found = {label for label in pages() | endpoints() if DANGEROUS.search(label)}
    assert found - HARMLESS == application.STEP_UP_ROUTES | authentication.STEP_UP_ROUTES
    assert found >= HARMLESS


@pytest.mark.parametrize("path", ["/emails", "/v1/webhook"])
def test_the_interface_needs_none(path: str) -> None:
    assert [label for label in authentication.STEP_UP_ROUTES if f"{label.split()[1]}/".startswith(f"{path}/")] == []
