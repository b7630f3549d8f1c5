"""The documentation works without a network, and what others wrote is carried unchanged."""

import hashlib
import re
import tomllib
from importlib import resources

import msgspec

from postroad.api import documentation
from postroad.web import routing
from tests.api import app_server


class Pong(msgspec.Struct, frozen=True):
    request_id: str


async def ping(_context: object, request: routing.Request) -> routing.Response:
    return routing.Response(200, Pong(request.id))


PING: routing.Route[object] = routing.Route(
    method="GET", path="/ping", handler=ping, summary="Ping", tag="Test", permission=None, responses={200: Pong}
)
ROUTES = (PING, *documentation.routes((PING,), version="1.2.3"))
STATIC = resources.files("postroad.api").joinpath("static")


async def test_the_document_describes_the_routes() -> None:
    async with app_server.running(ROUTES) as opened:
        response = await opened.client.get("/openapi.json")
        assert response.headers["content-type"] == "application/json"
        assert re.match(app_server.REQUEST_ID, response.headers["x-request-id"])
        assert list(response.json()["paths"]) == ["/ping"]
        # The version of tests/conformance/interface.md, and beside it that of the product.
        assert response.json()["info"]["version"] == "1.0.0"
        assert response.json()["info"]["x-postroad-version"] == "1.2.3"


async def test_the_page_runs_only_what_this_host_serves() -> None:
    async with app_server.running(ROUTES) as opened:
        page = await opened.client.get("/docs")
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert page.headers["content-security-policy"] == (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        assert not re.search(r"<script(?! src=)|<style|\son\w+=|\sstyle=|//", page.text)


async def test_everything_that_the_page_asks_for_is_there() -> None:
    kinds = {"css": "text/css", "js": "text/javascript", "json": "application/json"}
    async with app_server.running(ROUTES) as opened:
        page = (await opened.client.get("/docs")).text
        script = (await opened.client.get("/docs/start.js")).text
        asked = re.findall(r'(?:src|href|url)(?:=|: )"((?!data:)[^"]+)"', page + script)
        assert len(asked) == 5
        for name in asked:
            response = await opened.client.get(f"/{name}")
            assert response.status_code == 200
            assert response.headers["content-type"].startswith(kinds[name.rpartition(".")[2]])
            assert response.headers["x-content-type-options"] == "nosniff"
            assert re.match(app_server.REQUEST_ID, response.headers["x-request-id"])


def test_the_files_of_others_are_as_the_manifest_says() -> None:
    manifest = tomllib.loads(STATIC.joinpath("manifest.toml").read_text())["swagger-ui"]
    files = {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in STATIC.joinpath("swagger-ui").iterdir()
    }
    assert files == manifest["sha256"]
    assert "Apache License" in STATIC.joinpath("swagger-ui", "LICENSE").read_text()
    assert manifest["licence"] == "Apache-2.0"
    assert re.fullmatch(r"5\.\d+\.\d+", manifest["version"])


def test_the_page_asks_nobody_else_whether_the_document_is_valid() -> None:
    assert "validatorUrl: null" in STATIC.joinpath("start.js").read_text()
