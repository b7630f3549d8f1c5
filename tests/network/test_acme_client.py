"""The client of a certificate authority that answers what it likes."""

import http.server
import json
import threading
from collections.abc import Iterator

import pytest

from postroad.network.tls import acme_client

NAMES = ("mail.postroad.test", "mx.postroad.test")
HOSTILE_TEXT = "\x1b[2J\x1b]0;owned\x07\u202ereversed\r\nlevel=info " + "x" * 100_000


class Authority(http.server.ThreadingHTTPServer):
    """An authority on loopback. `names` are those that it wants proved; `order` is its answer to one, if it is odd."""

    daemon_threads = False  # its end waits for those that still close their connections

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.order: tuple[int, object] | None = None
        self.names: tuple[str, ...] = NAMES

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Authority

    def do_HEAD(self) -> None:
        self._answer(200, None)

    def do_GET(self) -> None:
        names = ("newNonce", "newAccount", "newOrder", "revokeCert", "keyChange")
        self._answer(200, {name: f"{self.server.url}/{name}" for name in names})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        url = self.server.url
        if self.path == "/newAccount":
            self._answer(201, {"status": "valid"})
        elif self.path == "/newOrder" and self.server.order is not None:
            self._answer(*self.server.order)
        elif self.path == "/newOrder":
            places = [f"{url}/authorization/{number}" for number in range(len(self.server.names))]
            self._answer(201, {"status": "pending", "authorizations": places, "finalize": f"{url}/finalize"})
        else:
            name = self.server.names[int(self.path.rpartition("/")[2])]
            challenge = {"type": "http-01", "url": f"{url}/challenge", "status": "pending", "token": "a" * 43}
            body = {"status": "pending", "identifier": {"type": "dns", "value": name}, "challenges": [challenge]}
            self._answer(200, body)

    def _answer(self, status: int, body: object) -> None:
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        kind = "application/problem+json" if status >= 400 else "application/json"
        fields = {"Content-Type": kind, "Replay-Nonce": "bm9uY2U", "Location": f"{self.server.url}/it"}
        for name, value in (fields | {"Content-Length": str(len(content))}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def authority() -> Iterator[Authority]:
    with Authority() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def client(authority: Authority) -> acme_client.AcmeClient:
    registered = acme_client.AcmeClient(f"{authority.url}/directory", acme_client.new_key())
    registered.register("operator@postroad.test")
    return registered


def order(client: acme_client.AcmeClient) -> acme_client.Order:
    return client.order(NAMES, acme_client.new_key(), kind="http-01")


def test_the_challenges_of_an_order_are_for_its_names(client: acme_client.AcmeClient) -> None:
    assert [challenge.name for challenge in order(client).challenges] == list(NAMES)


@pytest.mark.parametrize("name", ["other.example", "m\u00fcll.example", "\x1b[2J", ""])
def test_a_challenge_for_a_name_that_was_not_ordered_is_refused(
    authority: Authority, client: acme_client.AcmeClient, name: str
) -> None:
    authority.names = (NAMES[0], name)
    with pytest.raises(acme_client.AcmeError, match="another name"):
        order(client)


def test_what_an_authority_says_is_shown_as_one_short_line_of_plain_text(
    authority: Authority, client: acme_client.AcmeClient
) -> None:
    authority.order = (403, {"type": "urn:ietf:params:acme:error:unauthorized", "detail": HOSTILE_TEXT})
    with pytest.raises(acme_client.AcmeError) as caught:
        order(client)
    assert "owned" in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) <= 1000


DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    "body", [[], None, "text", 7, {"authorizations": 7}, {"authorizations": [7]}, {"status": []}, DEEP]
)
def test_an_answer_of_another_form_is_an_error_with_a_sentence(
    authority: Authority, client: acme_client.AcmeClient, body: object
) -> None:
    authority.order = (201, body)
    with pytest.raises(acme_client.AcmeError):
        order(client)
