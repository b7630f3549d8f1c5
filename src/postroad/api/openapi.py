"""The OpenAPI 3.1 document, generated from the route table and the Structs that validate.

Errors that the framework raises itself (a missing credential, a body too large, …) are added to those that a route
lists, so that every possible status is described; operations share them as components. Struct names are public: they
become component names. A type with a title becomes a component too. A nullable type is written as a list of types, as
in JSON Schema 2020-12.
"""

import http
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from postroad import errors
from postroad.api import routes as api_routes
from postroad.model.events import events
from postroad.model.mail import limits
from postroad.model.people import callers
from postroad.model.units import identifiers
from postroad.web import routing

# The `webhooks` of the OpenAPI document: what an endpoint receives, one entry for each event type.
#
# The schemas are those of `GET /v1/event-schemas`, as components that generated clients make types of.

Schema = dict[str, Any]

SIGNATURE: Final = {
    "name": "Service-Signature",
    "in": "header",
    "required": True,
    "description": "`t=<seconds since 1970>,v1=<64 hex digits>`, see docs/webhooks.md. Verify it before you trust the "
    "body.",
    "schema": {"type": "string"},
}


def schemas_of_events() -> dict[str, Schema]:
    """The components, by name."""
    return {_event_name(each): _component(each) for kind in events.EventType for each in events.schema_of_type(kind)}


def webhooks() -> dict[str, Schema]:
    """The operations, by event type."""
    return {kind.value: {"post": _webhook(kind)} for kind in events.EventType}


def _event_name(schema: events.EventSchema) -> str:
    name = "".join(word.capitalize() for word in schema.type.replace("_", ".").split("."))
    of_version = "" if tuple(schema.versions) == events.VERSIONS else "V" + "And".join(map(str, schema.versions))
    return f"{name}Event{of_version}"


def _component(schema: events.EventSchema) -> Schema:
    members = {word: part for word, part in schema.schema.items() if word != "$schema"}
    return {**members, "title": _event_name(schema)}


def _webhook(kind: events.EventType) -> Schema:
    references = [{"$ref": f"#/components/schemas/{_event_name(each)}"} for each in events.schema_of_type(kind)]
    name = _event_name(events.schema_of_type(kind)[-1]).partition("Event")[0]
    return {
        "operationId": f"on{name}",
        "tags": ["Webhooks"],
        "summary": f"The event `{kind}`",
        "description": "Sent to every endpoint that has subscribed to the type. Endpoints deduplicate by `id`.",
        "security": [],
        "parameters": [SIGNATURE],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": references[0] if len(references) == 1 else {"anyOf": references}}
            },
        },
        "responses": {"2XX": {"description": "The event is received; anything else is a failed attempt."}},
    }


# The version of interface.md of tests/conformance, which changes only with that page.
INTERFACE_VERSION: Final = "1.0.0"
REQUEST_ID: Final = {"type": "string", "pattern": identifiers.pattern(identifiers.REQUEST)}
SECURITY_SCHEMES: Final = {
    "basic": {"type": "http", "scheme": "basic", "description": "The SMTP username and password of the account."},
    "api_key": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key (`pr_live_…`, or `pr_test_…` for test mode) with the scope that is named.",
    },
    "token": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "A login token of a user.",
    },
}
IDEMPOTENCY_KEY: Final = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": True,
    "description": "Chosen by the client. A retry with the same key and body gets the first response again.",
    "example": "order-1042-receipt",
    # White space around a field value is not part of it (RFC 9110 section 5.5), so a value cannot consist of it.
    "schema": {
        "type": "string",
        "minLength": 1,
        "maxLength": limits.IDEMPOTENCY_KEY_CHARACTERS,
        "pattern": r"[^ \t]",
    },
}
DESCRIPTION: Final = """\
Sends transactional email. `POST /emails` accepts a message, `GET /emails/{id}` returns its status, and everything
under `/v1` manages the account.

Every response has an `X-Request-ID` header; JSON responses repeat it as `request_id`. Every error is an `Error` object.
An unknown path is 404 `not_found`; a method that a path does not support is 405 `invalid_request` with `Allow`; a
request that does not arrive in time is 503 `temporary_failure`."""
TAGS: Final = {
    "Emails": "Send mail and read its status.",
    "Log-in": "Login tokens and passwords of users. A token gives access to all of `/v1` that the role permits.",
    "Account": "Credits and their changes.",
    "Messages": "The message log of the account.",
    "SMTP credentials": "Usernames and passwords, for SMTP and for HTTP Basic authentication.",
    "API keys": "Keys for programs, with scopes, each belonging to an SMTP credential.",
    "Domains": "Domains that the account can send from.",
    "Templates": "Message templates with placeholders, sent by alias.",
    "Suppressions": "Addresses that receive no mail from the account.",
    "Inbound": "Routes that receive mail for the account, and the mail that they received.",
    "Webhook": "The first webhook endpoint of the account, and its delivery log.",
    "Webhooks": "All webhook endpoints of the account, each with its events, filters, secret and delivery log.",
    "Single sign-on": "The OpenID Connect provider with which people of the account log in. For owners, with a token.",
    "Team": "The users of the account. Owners invite and remove them.",
    "Audit log": "Who did what in the account.",
    "Requests": "Requests that were refused or failed, and changes by keys, of the last 7 days.",
    "Health": "For load balancers and supervisors; public.",
}
PATH_PARAMETERS: Final = {
    "id": "The id, as an earlier response returned it.",
    "webhook": "The id of a webhook, as an earlier response returned it.",
    "email": "An email address, percent-encoded and case-insensitive.",
    "type": "An event type, such as `email.delivered`.",
    "name": "A provider, such as `google`, `others`, the name of an upstream such as `upstream:relay`, or a host.",
    "token": "The end of a `url` that an event or a response had.",
    "alias": "1 to 64 of the characters a-z, 0-9, `_` and `-`.",
}
# Errors that permit a retry say when.
WITH_RETRY_AFTER: Final = (
    errors.RateLimited,
    errors.WarmupLimited,
    errors.IdempotencyInProgress,
    errors.ServiceUnavailable,
    errors.TemporaryFailure,
)
# Rate limit headers are on errors too, except for unauthenticated requests and internal failures.
RATE_FIELDS: Final = ("RateLimit", "RateLimit-Policy")
WITHOUT_RATE: Final = (errors.Unauthorized, errors.InternalError)


class About(msgspec.Struct, frozen=True):
    """What a document says of itself: that of the accounts' API, unless another one is made."""

    title: str = "Postroad"
    description: str = DESCRIPTION
    operation_ids: Mapping[str, str] = msgspec.field(default_factory=lambda: api_routes.OPERATION_IDS)
    has_webhooks: bool = True


ACCOUNTS: Final = About()


def document(routes: Sequence[routing.Route[Any]], *, version: str, about: About = ACCOUNTS) -> Schema:
    """The complete document. `version` is that of the product."""
    types = [
        kind
        for route in routes
        for kind in (route.body, route.query, *route.responses.values())
        if kind is not None and kind is not bytes
    ]
    references, components = msgspec.json.schema_components(
        [*types, routing.Error], ref_template="#/components/schemas/{name}"
    )
    schemas = dict(zip([*types, routing.Error], references, strict=True))
    components = {name: _simplify(schema) for name, schema in _hoist(components).items()}
    _add_rules(routes, schemas=schemas, components=components)
    paths: dict[str, Schema] = {}
    shared: dict[str, Schema] = {}
    for route in routes:
        operation = _operation(route, about.operation_ids, schemas=schemas, components=components)
        operation["responses"] |= _refusals(route, responses=shared, components=components)
        paths.setdefault(route.path, {})[route.method.lower()] = operation
    for route in routes:
        if route.query is not None:
            components.pop(_name(schemas[route.query]), None)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": about.title,
            "version": INTERFACE_VERSION,
            "x-postroad-version": version,
            "description": about.description,
            "license": {"name": "Apache License 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [_tag(name) for name in dict.fromkeys(route.tag for route in routes)],
        "paths": paths,
        **({"webhooks": webhooks()} if about.has_webhooks else {}),
        "components": {
            "schemas": components | (schemas_of_events() if about.has_webhooks else {}),
            "responses": shared,
            "securitySchemes": SECURITY_SCHEMES,
        },
    }


def refusals(route: routing.Route[Any]) -> list[type[errors.PostroadError]]:
    """Every error that a call of the route can get: those it lists, and those of the framework."""
    found: list[type[errors.PostroadError]] = list(route.errors)
    if route.body or (route.query and not route.ignores_bad_query):
        found.append(errors.InvalidRequest)
    if route.body:
        found.append(errors.PayloadTooLarge)
    if route.permission is not None:
        found.append(errors.Unauthorized)
        if route.permission not in callers.PASSWORD_PERMISSIONS:
            found.append(errors.RateLimited)
        # By role, or by the networks of an API key.
        if route.permission not in callers.ROLE_PERMISSIONS[callers.Role.READ_ONLY] or (
            route.permission is not callers.Permission.READ and route.key_scope is not None
        ):
            found.append(errors.Forbidden)
    if routing.parameters(route.path):
        found.append(errors.NotFound)
    found += [errors.InternalError, errors.ServiceUnavailable, errors.TemporaryFailure]
    return list(dict.fromkeys(found))


def _add_rules(
    routes: Sequence[routing.Route[Any]], *, schemas: Mapping[type, Schema], components: dict[str, Schema]
) -> None:
    for route in routes:
        if route.body is not None and route.body is not bytes and route.body_rules:
            rules = dict(route.body_rules)
            # Within `allOf`, so that generated clients have one type for the body, and not one for each branch.
            choices = [{word: rules.pop(word)} for word in ("anyOf", "oneOf") if word in rules]
            components[_name(schemas[route.body])].update(rules | ({"allOf": choices} if choices else {}))


def _tag(name: str) -> Schema:
    return {"name": name, "description": TAGS[name]} if name in TAGS else {"name": name}


def _operation(
    route: routing.Route[Any],
    names: Mapping[str, str],
    *,
    schemas: Mapping[type, Schema],
    components: Mapping[str, Schema],
) -> Schema:
    endpoint = f"{route.method} {route.path}"
    operation: Schema = {
        # A test makes sure that every route has a name.
        "operationId": names.get(endpoint, endpoint),
        "tags": [route.tag],
        "summary": route.summary,
        "description": route.description,
        "security": _security(route),
        "parameters": _parameters(route, schemas=schemas, components=components),
        "responses": {str(status): _success(route, status, schemas=schemas) for status in route.responses},
    }
    if route.body is not None:
        schema = {"type": "string", **route.body_rules} if route.body is bytes else schemas[route.body]
        content = {route.body_type: {"schema": schema}}
        operation["requestBody"] = {"required": route.body_required, "content": content}
    return operation


def _security(route: routing.Route[Any]) -> list[Schema]:
    """What a route takes. OpenAPI 3.1 lets a scheme name the scopes that a credential needs."""
    if route.permission is None:
        return []
    basic: list[Schema] = [{"basic": []}] if route.permission in callers.PASSWORD_PERMISSIONS else []
    key: list[Schema] = [] if route.key_scope is None else [{"api_key": [route.key_scope.value]}]
    return [*basic, *key, {"token": []}]


def _parameters(
    route: routing.Route[Any], *, schemas: Mapping[type, Schema], components: Mapping[str, Schema]
) -> list[Schema]:
    found: list[Schema] = []
    for name in routing.parameters(route.path):
        pattern = route.path_patterns.get(name)
        schema = {"type": "string", "pattern": pattern} if pattern else {"type": "string", "minLength": 1}
        found.append(_parameter(name, "path", {**schema, "description": PATH_PARAMETERS.get(name, "")}, required=True))
    if route.query is not None:
        component = components[_name(schemas[route.query])]
        for name, schema in component["properties"].items():
            required = name in component.get("required", ())
            found.append(_parameter(name, "query", _without_null(schema), required=required))
    if route.idempotent:
        found.append(IDEMPOTENCY_KEY)
    return found


def _parameter(name: str, place: str, schema: Schema, *, required: bool) -> Schema:
    """A parameter. Swagger UI shows the description of the parameter, not that of its schema."""
    described = {"description": schema["description"]} if schema.get("description") else {}
    bare = {word: part for word, part in schema.items() if word != "description"}
    return {"name": name, "in": place, "required": required, **described, "schema": bare}


def _success(route: routing.Route[Any], status: int, *, schemas: Mapping[type, Schema]) -> Schema:
    response = _response(http.HTTPStatus(status).phrase, _response_headers(route))
    kind = route.responses[status]
    if kind is not None:
        schema = {"type": "string"} if kind is bytes else schemas[kind]
        response["content"] = {route.content_type: {"schema": schema}}
    return response


def _response_headers(route: routing.Route[Any]) -> dict[str, Schema]:
    return {name: {"description": text, "schema": {"type": "string"}} for name, text in route.response_headers.items()}


def _refusals(
    route: routing.Route[Any], *, responses: dict[str, Schema], components: dict[str, Schema]
) -> dict[str, Schema]:
    """The errors of a route by status, each a reference to a component that other operations share."""
    by_status: dict[int, list[type[errors.PostroadError]]] = {}
    for kind in refusals(route):
        by_status.setdefault(kind.status, []).append(kind)
    rate = {name: header for name, header in _response_headers(route).items() if name in RATE_FIELDS}
    found = {}
    for status, kinds in sorted(by_status.items()):
        name = "Or".join(kind.__name__ for kind in kinds)
        codes = {"properties": {"code": {"enum": list(dict.fromkeys(kind.code for kind in kinds))}}}
        schema = f"{name.removesuffix('Error')}Error"
        components[schema] = {
            "description": " ".join(f"{kind.__doc__}" for kind in kinds),
            "allOf": [{"$ref": "#/components/schemas/Error"}, codes],
        }
        response = _refusal(kinds, rate, schema=schema)
        shared = f"{name}OfSend" if RATE_FIELDS[0] in response["headers"] else name
        responses[shared] = response
        found[str(status)] = {"$ref": f"#/components/responses/{shared}"}
    return found


def _refusal(kinds: Sequence[type[errors.PostroadError]], rate: Mapping[str, Schema], *, schema: str) -> Schema:
    headers = {} if all(kind in WITHOUT_RATE for kind in kinds) else dict(rate)
    if any(kind in WITH_RETRY_AFTER for kind in kinds):
        headers["Retry-After"] = {"description": "Seconds to wait.", "schema": {"type": "integer"}}
    if errors.Unauthorized in kinds:
        headers["WWW-Authenticate"] = {
            "description": "The schemes that this route takes.",
            "required": True,
            "schema": {"type": "string"},
        }
    if errors.SecondFactorRequired in kinds:
        headers["Second-Factor"] = {
            "description": "`required` if the password is right and `code` is missing or wrong.",
            "schema": {"type": "string"},
        }
    response = _response("\n".join(f"- `{kind.code}`: {kind.__doc__}" for kind in kinds), headers)
    response["content"] = {routing.JSON: {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    return response


def _response(description: str, headers: Mapping[str, Schema]) -> Schema:
    request_id = {"description": "The id of the request.", "required": True, "schema": REQUEST_ID}
    return {"description": description, "headers": {"X-Request-ID": request_id, **headers}}


def _name(reference: Schema) -> str:
    name: str = reference["$ref"].rpartition("/")[2]
    return name


def _without_null(schema: Schema) -> Schema:
    """A parameter's schema without null: a query string cannot express it."""
    if isinstance(schema.get("type"), list):
        return {**schema, "type": schema["type"][0]}
    if "anyOf" in schema:
        others = [branch for branch in schema["anyOf"] if branch != {"type": "null"}]
        rest = {name: part for name, part in schema.items() if name != "anyOf"}
        return {**others[0], **rest} if len(others) == 1 else {**rest, "anyOf": others}
    return schema


def _hoist(components: Mapping[str, Schema]) -> dict[str, Schema]:
    """The components, with each titled type as one more. A description given at one place stays at that place."""
    found: dict[str, list[Schema]] = {}
    for component in components.values():
        _find_titled(component.get("properties", {}), found)
    titled = {title: max(schemas, key=schemas.count) for title, schemas in found.items()}
    hoisted = {
        name: {word: _refer(part, titled) if word == "properties" else part for word, part in component.items()}
        for name, component in components.items()
    }
    return hoisted | titled


def _find_titled(schema: Any, found: dict[str, list[Schema]]) -> None:  # noqa: ANN401 - any part of a schema
    if isinstance(schema, dict) and isinstance(schema.get("title"), str):
        found.setdefault(schema["title"], []).append(schema)
    elif isinstance(schema, list | dict):
        for part in schema.values() if isinstance(schema, dict) else schema:
            _find_titled(part, found)


def _refer(schema: Any, titled: Mapping[str, Schema]) -> Any:  # noqa: ANN401 - any part of a schema
    if isinstance(schema, list):
        return [_refer(part, titled) for part in schema]
    if not isinstance(schema, dict):
        return schema
    title = schema.get("title")
    if not isinstance(title, str):
        return {name: _refer(part, titled) for name, part in schema.items()}
    told = {name: part for name, part in schema.items() if titled[title].get(name) != part}
    return {"$ref": f"#/components/schemas/{title}", **told}


# Of members that are left out when they are empty.
_ABSENT: Final[tuple[object, ...]] = (None, "", [])


def _simplify(schema: Any) -> Any:  # noqa: ANN401 - any part of a schema
    """Rewrite null as one of a list of types, add the type of enums, and drop defaults of `absent`."""
    if isinstance(schema, list):
        return [_simplify(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    tidied = {name: _simplify(part) for name, part in schema.items() if not (name == "default" and part in _ABSENT)}
    branches = tidied.get("anyOf", [])
    others = [branch for branch in branches if branch != {"type": "null"}]
    if len(others) == 1 and len(branches) > 1 and isinstance(others[0].get("type"), str) and "enum" not in others[0]:
        del tidied["anyOf"]
        tidied = {**others[0], **tidied, "type": [others[0]["type"], "null"]}
    if tidied.get("enum") == [True]:
        # Generators of clients understand neither an enum of booleans nor a constant one.
        tidied = {**{name: part for name, part in tidied.items() if name != "enum"}, "type": "boolean"}
    if isinstance(tidied.get("enum"), list) and all(isinstance(word, str) for word in tidied["enum"]):
        tidied["type"] = "string"
    return tidied
