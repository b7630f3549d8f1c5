"""The credentials that `/openapi.json` declares: those of the interface, and a scope for every route of the management.

tests/permissions/test_walk.py compares them with what opens each route.
"""

from postroad.api import openapi
from postroad.api import routes as api_routes


def test_the_endpoints_of_the_interface_declare_what_it_says() -> None:
    """tests/conformance/interface.md, "Authentication"; an API key may also read when it has that scope."""
    paths = openapi.document(api_routes.ROUTES, version="0")["paths"]
    assert paths["/emails"]["post"]["security"] == [{"basic": []}, {"api_key": ["send"]}, {"token": []}]
    assert paths["/emails/{id}"]["get"]["security"] == [{"basic": []}, {"api_key": ["read"]}, {"token": []}]
    of_webhooks = [operation for path, item in paths.items() if "webhook" in path for operation in item.values()]
    assert len(of_webhooks) == 22
    assert all(operation["security"] == [{"api_key": ["webhooks"]}, {"token": []}] for operation in of_webhooks)
    assert paths["/v1/test-email"]["post"]["security"] == [{"api_key": ["send"]}, {"token": []}]


def test_every_route_of_the_management_belongs_to_a_scope() -> None:
    """An API key manages what its scopes name; only a user's own login, and how users log in, have none."""
    found: dict[str, set[str]] = {}
    for route in api_routes.ROUTES:
        if route.path.startswith("/v1/") and route.permission is not None:
            resource = route.path.split("/")[2]
            found.setdefault(resource, set()).add(str(route.key_scope))
    assert found == {
        "account": {"statistics", "None"},
        "api-keys": {"team"},
        "audit-log": {"team"},
        "auth": {"None"},
        "credentials": {"team"},
        "domains": {"domains"},
        "event-schemas": {"webhooks"},
        "inbound": {"domains", "read"},
        "messages": {"read", "send"},
        "requests": {"team"},
        "sso": {"None"},
        "statistics": {"statistics"},
        "suppressions": {"suppressions"},
        "team": {"team"},
        "templates": {"templates"},
        "test-email": {"send"},
        "webhook": {"webhooks"},
        "webhook-listeners": {"webhooks"},
        "webhooks": {"webhooks"},
    }
    changing = [route for route in api_routes.ROUTES if route.path.startswith("/v1/messages") and route.method != "GET"]
    assert {(route.path, str(route.key_scope)) for route in changing} == {
        ("/v1/messages/{id}/resend", "send"),
        ("/v1/messages/{id}/retry", "send"),
    }
