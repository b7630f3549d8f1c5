"""A path finds its route exactly, and a header field that is read was sent once."""

import pytest

from postroad import errors
from postroad.web import routing


def table(*routes: tuple[str, str]) -> routing.Table[str]:
    found: routing.Table[str] = routing.Table()
    for method, path in routes:
        found.add(method, path, target=f"{method} {path}")
    return found


EMAILS = (("POST", "/emails"), ("GET", "/emails/{id}"), ("GET", "/emails/{id}/raw"), ("GET", "/emails/stats"))


@pytest.mark.parametrize(
    "method, path, target, parameters",
    [
        ("POST", b"/emails", "POST /emails", {}),
        ("POST", b"/em%61ils", "POST /emails", {}),
        ("GET", b"/emails/em_1", "GET /emails/{id}", {"id": "em_1"}),
        ("HEAD", b"/emails/em_1", "GET /emails/{id}", {"id": "em_1"}),
        ("GET", b"/emails/em_1/raw", "GET /emails/{id}/raw", {"id": "em_1"}),
        ("GET", b"/emails/stats", "GET /emails/stats", {}),
        ("GET", b"/emails/a%2Fb", "GET /emails/{id}", {"id": "a/b"}),
        ("GET", b"/emails/%C3%A9%00", "GET /emails/{id}", {"id": "é\0"}),
        ("GET", b"/emails/%FF", "GET /emails/{id}", {"id": "�"}),
        ("GET", b"/emails/%", "GET /emails/{id}", {"id": "%"}),
    ],
)
def test_a_path_finds_its_route(method: str, path: bytes, target: str, parameters: dict[str, str]) -> None:
    assert table(*EMAILS).find(method, path) == (target, parameters)


@pytest.mark.parametrize(
    "path",
    [
        b"/",
        b"*",
        b"",
        b"/email",
        b"/emails/",
        b"//emails",
        b"/emails//raw",
        b"/emails%2Fem_1",
        b"/emails/em_1/raw/x",
        b"/x" * 5000,
    ],
)
def test_another_path_finds_nothing(path: bytes) -> None:
    with pytest.raises(errors.NotFound):
        table(*EMAILS).find("GET", path)


@pytest.mark.parametrize(
    "method, path, allowed",
    [
        ("GET", b"/emails", ("POST",)),
        ("OPTIONS", b"/emails", ("POST",)),
        ("DELETE", b"/emails/em_1", ("GET", "HEAD")),
        ("TRACE", b"/emails/stats", ("GET", "HEAD")),
    ],
)
def test_another_method_hears_which_there_are(method: str, path: bytes, allowed: tuple[str, ...]) -> None:
    with pytest.raises(errors.MethodNotAllowed) as refused:
        table(*EMAILS).find(method, path)
    assert refused.value.allowed == allowed


def test_methods_of_one_path_may_name_its_parameter_differently() -> None:
    routes = table(("GET", "/x/{id}"), ("DELETE", "/x/{name}"))
    assert routes.find("GET", b"/x/1") == ("GET /x/{id}", {"id": "1"})
    assert routes.find("DELETE", b"/x/1") == ("DELETE /x/{name}", {"name": "1"})


def test_two_routes_at_one_place_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="duplicate route"):
        table(("GET", "/x/{id}"), ("GET", "/x/{other}"))


def test_a_field_is_found_by_its_name() -> None:
    headers = routing.Headers([(b"host", b"x"), (b"accept", b"a"), (b"accept", b"b")])
    assert headers.get(b"host") == b"x"
    assert headers.get(b"authorization") is None


def test_a_field_that_was_sent_twice_is_refused_when_it_is_read() -> None:
    headers = routing.Headers([(b"idempotency-key", b"a"), (b"idempotency-key", b"a")])
    with pytest.raises(errors.InvalidRequest, match="Idempotency-Key: sent more than once"):
        headers.get(b"idempotency-key")


def test_a_public_route_has_no_caller() -> None:
    request = routing.Request(id="req_1", headers=routing.Headers([]), client_address="")
    with pytest.raises(RuntimeError):
        request.caller  # noqa: B018 - asking is the test
