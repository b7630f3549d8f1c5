"""Two applications at one address: each path belongs to one of them, and any other path to the second."""

import pytest

from postroad.network.http import http_server
from postroad.web import path_switch
from tests import local_requests


def answering(name: str, asked: list[str]) -> http_server.Application:
    """A stand-in for an application that records who was called."""

    async def app(_request: http_server.Request) -> None:
        asked.append(name)

    return app


@pytest.mark.parametrize(
    "path, whose",
    [
        (b"/v1", "first"),
        (b"/v1/account", "first"),
        (b"/emails", "first"),
        (b"/emails/unknown/thing", "first"),
        (b"/healthz", "first"),
        (b"/", "second"),
        (b"/v1x", "second"),
        (b"/messages", "second"),
        (b"//v1", "second"),
        (b"/%76%31/account", "second"),
        (b"", "second"),
    ],
)
async def test_the_first_segment_decides(path: bytes, whose: str) -> None:
    asked: list[str] = []
    first, second = (answering(name, asked) for name in ("first", "second"))
    switch = path_switch.PathSwitch(first, second, paths=["/v1/account", "/emails", "/emails/{id}", "/healthz"])
    await switch(local_requests.Request(target=path))
    assert asked == [whose]


@pytest.mark.parametrize(
    "path, whose",
    [
        (b"/compat/mail", "mail"),
        (b"/compat/mail/emails", "mail"),
        (b"/compat/post/", "post"),
        (b"/compat/mailx", "other"),
        (b"/compat", "other"),
        (b"/emails", "other"),
        (b"/compat/%6dail", "other"),
    ],
)
async def test_an_application_owns_everything_below_its_prefix(path: bytes, whose: str) -> None:
    asked: list[str] = []
    mounted = {f"/compat/{name}": answering(name, asked) for name in ("mail", "post")}
    switch = path_switch.PathPrefixes(mounted, answering("other", asked))
    await switch(local_requests.Request(target=path))
    assert asked == [whose]


@pytest.mark.parametrize("path", [b"/email", b"/compat/post/email"])
async def test_a_header_field_of_its_clients_belongs_to_an_application(path: bytes) -> None:
    asked: list[bytes] = []

    async def app(request: http_server.Request) -> None:
        asked.append(request.raw_path)
        request.account_id = "noted for the listener"

    async def other(_request: http_server.Request) -> None:
        asked.append(b"other")

    switch = path_switch.PathPrefixes({"/compat/post": app}, other, headers={b"x-token": "/compat/post"})
    request = local_requests.Request(target=path, headers=[(b"host", b"a"), (b"x-token", b"b")])
    await switch(request)
    assert asked == [b"/compat/post/email"]
    assert request.account_id == "noted for the listener"
    await switch(local_requests.Request(target=b"/email", headers=[(b"host", b"a")]))
    assert asked[1:] == [b"other"]
