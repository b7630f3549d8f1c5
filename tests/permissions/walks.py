"""Walks over the routes of a surface, for the core and for each extension that has an API of its own."""

from collections.abc import Callable, Mapping
from urllib import parse

import httpx

from postroad.model.people import callers
from postroad.web import routing
from tests.api.v1 import test_tenancy as tenancy
from tests.dashboard import test_every_route as pages
from tests.permissions import surfaces
from tests.permissions.installation import Things

Answers = Callable[[httpx.Response], bool]
# The handler asks more of people than the route does of programs.
OF_PEOPLE = {
    "GET /v1/inbox": callers.Permission.CONTENT,
    "GET /v1/inbox/{id}/raw": callers.Permission.CONTENT,
    "DELETE /v1/inbox": callers.Permission.CHANGE,
}
# A link for a password gives everything that its user may do: a key with one scope cannot give that.
OF_EVERY_SCOPE = {"POST /v1/team/{id}/password-link", "POST /v1/team/{id}/recovery-link"}
WRONG_TYPE = {"Content-Type": "text/plain"}
NO_QUERIES: Mapping[str, tuple[str, ...]] = {}


def name(route: surfaces.Route) -> str:
    return f"{route.method} {route.path}"


def is_refused(answer: httpx.Response) -> bool:
    """Whether the credential was not enough."""
    return answer.status_code in (401, 403)


def wrong_permissions(surface: surfaces.Surface, needed: Mapping[callers.Permission, set[str]]) -> list[str]:
    """The routes of an extension that require another permission than the one that is listed, and lists of no route.

    What a GET without an entry needs is VIEW, and anything else CHANGE.
    """
    known = {name(route): route for route in surface.routes}
    listed = {one: permission for permission, names in needed.items() for one in names}
    wrong = [one for one in listed if one not in known]
    for one, route in known.items():
        usual = callers.Permission.VIEW if route.method == "GET" else callers.Permission.CHANGE
        if route.permission is not listed.get(one, usual):
            wrong.append(f"{one}: {route.permission}")
    return wrong


async def ask(client: httpx.AsyncClient, route: surfaces.Route, headers: dict[str, str]) -> httpx.Response:
    """Ask for something that does not exist, so that nothing is changed where the credential is enough."""
    path = route.path
    for parameter in routing.parameters(path):
        path = path.replace(f"{{{parameter}}}", unknown(route))
    more = WRONG_TYPE if route.body is not None else {}
    content = b"x" if route.body is not None else None
    return await client.request(route.method, path, content=content, headers={**headers, **more})


def unknown(route: surfaces.Route) -> str:
    kind = pages.kind_of(route) or tenancy.NAMED.get((route.method, route.path), "message")
    return {**pages.UNKNOWN, **tenancy.UNKNOWN}[kind].split("/")[0]


async def wrong_answers(
    surface: surfaces.Surface, credential: surfaces.Credential, *, is_refused: Answers = is_refused
) -> list[str]:
    """The routes that take this credential although the table says no, or refuse it although it says yes."""
    wrong = []
    is_key = credential.kind in surfaces.KEYS
    async with surfaces.opened(surface) as client:
        # What ends the session comes last.
        for route in sorted(surface.routes, key=lambda one: one.path.endswith("/logout")):
            answer = await ask(client, route, credential.headers(surface))
            is_allowed = credential.may(surface, route) and not (is_key and name(route) in OF_EVERY_SCOPE)
            if credential.permissions and name(route) in OF_PEOPLE:
                is_allowed = OF_PEOPLE[name(route)] in credential.permissions
            # Over the API a user is told so (403), and a program that its credential is not the right one (401).
            is_right_refusal = (
                surface.name != surfaces.API
                or is_allowed
                or name(route) in OF_EVERY_SCOPE
                or answer.status_code == (403 if credential.permissions else 401)
            )
            if is_refused(answer) is is_allowed or answer.status_code >= 500 or not is_right_refusal:
                wrong.append(f"{name(route)}: {answer.status_code} {answer.text[:80]}")
            client.cookies.clear()
    return wrong


async def get(
    client: httpx.AsyncClient, path: str, who: surfaces.Credential, surface: surfaces.Surface
) -> httpx.Response:
    answer = await client.get(path, headers=who.headers(surface))
    client.cookies.clear()
    return answer


async def answers(
    surface: surfaces.Surface,
    things: Things,
    examples: Mapping[str, str],
    who: Callable[[surfaces.Route], surfaces.Credential],
    *,
    queries: Mapping[str, tuple[str, ...]] = NO_QUERIES,
) -> list[tuple[str, str, httpx.Response]]:
    """All that can be read, with each example and each query: the path of the route, the address and the answer."""
    found = []
    async with surfaces.opened(surface) as client:
        for route in surface.routes:
            if route.method != "GET":
                continue
            for path in _paths(route, things, examples):
                for query in queries.get(route.path, ("",)):
                    answer = await get(client, f"{path}{query}", who(route), surface)
                    found.append((route.path, f"{path}{query}", answer))
    return found


async def unanswered(
    surface: surfaces.Surface,
    things: Things,
    examples: Mapping[str, str],
    who: Callable[[surfaces.Route], surfaces.Credential],
    *,
    otherwise: Mapping[str, int],
    queries: Mapping[str, tuple[str, ...]] = NO_QUERIES,
) -> list[str]:
    """What can be read and is not answered as it should be, with each example and each query; 200 unless listed."""
    found = await answers(surface, things, examples, who, queries=queries)
    return [
        f"{path}: {answer.status_code} {answer.text[:200]}"
        for route, path, answer in found
        if answer.status_code != otherwise.get(route, 200)
    ]


def _paths(route: surfaces.Route, things: Things, examples: Mapping[str, str]) -> list[str]:
    parameters = routing.parameters(route.path)
    if not parameters:
        return [route.path]
    found = []
    for example in things[examples[route.path]]:
        path = route.path
        for parameter, value in zip(parameters, example.split("/"), strict=True):
            path = path.replace(f"{{{parameter}}}", parse.quote(value, safe=""))
        found.append(path)
    return found


def with_parameters(surface: surfaces.Surface) -> set[str]:
    """The paths of what can be read that need an example."""
    return {route.path for route in surface.routes if route.method == "GET" and routing.parameters(route.path)}
