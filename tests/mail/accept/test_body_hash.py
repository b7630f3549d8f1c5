"""When two send requests are the same: members, addresses, headers, variables and files count by their meaning."""

import base64
from typing import Any

import msgspec
import pytest

from postroad.mail.accept import compose, validation
from postroad.model.mail import send_request

BODY: dict[str, Any] = {"from": "Shop <shop@example.com>", "to": ["ada@example.org"], "subject": "Hello", "text": "Hi"}
TEMPLATE: dict[str, Any] = {"text": None, "template": "welcome"}
FILE = {"filename": "a.txt", "content": "SGVsbG8sIHdvcmxk"}


def hashed(**changes: object) -> bytes:
    request = msgspec.convert(BODY | changes, send_request.SendRequest)
    return compose.body_hash(validation.check(request))


@pytest.mark.parametrize(
    "one, other",
    [
        ({}, {"cc": None}),
        ({}, {"cc": []}),
        ({}, {"bcc": []}),
        ({}, {"reply_to": None, "html": None, "headers": None, "tags": None, "attachments": None}),
        ({}, {"html": "", "headers": {}, "tags": [], "attachments": []}),
        ({}, {"to": "ada@example.org"}),
        ({"cc": "bob@example.org"}, {"cc": ["bob@example.org"]}),
        ({"reply_to": "bob@example.org"}, {"reply_to": ["bob@example.org"]}),
        ({}, {"reply_to": []}),
        ({"tags": "a"}, {"tags": ["a"]}),
        ({"tags": ["a", "b"]}, {"tags": ["a", "b", "a"]}),
        ({}, {"from": '"Shop"  <shop@EXAMPLE.com>'}),
        ({}, {"to": " <ada@example.org> "}),
        ({"to": "ada@münchen.example"}, {"to": "ada@xn--mnchen-3ya.example"}),
        ({"headers": {"X-A": "1", "X-B": "2"}}, {"headers": {"x-b": "2", "X-a": "1"}}),
        (TEMPLATE, TEMPLATE | {"variables": {}}),
        (TEMPLATE, TEMPLATE | {"text": ""}),
        (TEMPLATE | {"variables": {"a": 1, "b": -2}}, TEMPLATE | {"variables": {"b": -2.0, "a": 1.0}}),
        (TEMPLATE | {"variables": {"a": 0}}, TEMPLATE | {"variables": {"a": -0.0}}),
        (TEMPLATE | {"variables": {"a": 10**19}}, TEMPLATE | {"variables": {"a": 1e19}}),
        (TEMPLATE | {"variables": {"a": [{"b": 1, "c": 2}]}}, TEMPLATE | {"variables": {"a": [{"c": 2.0, "b": 1}]}}),
        ({}, {"send_at": None, "expires_in": None}),
        ({"send_at": "2026-01-31T12:00:00Z"}, {"send_at": "2026-01-31t13:00:00.000+01:00"}),
        ({"attachments": [FILE]}, {"attachments": [FILE | {"content": "SGVsbG8s\r\nIHdvcmxk\n"}]}),
        ({}, {"metadata": {}}),
        ({"metadata": {"a": "1", "b": "2"}}, {"metadata": {"b": "2", "a": "1"}}),
        ({"attachments": [FILE]}, {"attachments": [FILE | {"content_type": "text/plain", "content_id": None}]}),
    ],
)
def test_requests_that_mean_the_same_are_the_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert hashed(**one) == hashed(**other)


DIFFERENT: list[dict[str, Any]] = [
    {},
    {"from": "shop@example.com"},
    {"from": "Store <shop@example.com>"},
    {"to": "Ada@example.org"},
    {"to": "ada@example.net"},
    {"to": ["ada@example.org", "bob@example.org"]},
    {"to": ["bob@example.org", "ada@example.org"]},
    {"cc": "bob@example.org"},
    {"bcc": "bob@example.org"},
    {"metadata": {"order": "1"}},
    {"metadata": {"order": "2"}},
    {"metadata": {"Order": "1"}},
    {"reply_to": "bob@example.org"},
    {"reply_to": ["bob@example.org", "ada@example.org"]},
    {"reply_to": ["ada@example.org", "bob@example.org"]},
    {"subject": "Hello!"},
    {"text": "Hi\n"},
    {"text": None, "html": "Hi"},
    {"html": "Hi"},
    TEMPLATE,
    TEMPLATE | {"template": "other"},
    TEMPLATE | {"subject": None},
    *(TEMPLATE | {"variables": {"a": value}} for value in (1, "1", True, "true", 1.5, 0, False, "", 1e300, 2**63)),
    TEMPLATE | {"variables": {"a": 1, "b": 2}},
    TEMPLATE | {"variables": {"a": 2, "b": 1}},
    {"headers": {"X-A": "1"}},
    {"headers": {"X-A": "2"}},
    {"headers": {"X-B": "1"}},
    {"headers": {"X-A": "1", "X-B": "1"}},
    {"tags": "a"},
    {"tags": "b"},
    {"tags": ["a", "b"]},
    {"tags": ["b", "a"]},
    {"send_at": "2026-01-31T12:00:00Z"},
    {"send_at": "2026-01-31T12:00:01Z"},
    {"expires_in": 60},
    {"send_at": "2026-01-31T12:00:00Z", "expires_in": 60},
    {"attachments": [FILE]},
    {"attachments": [FILE, FILE]},
    {"attachments": [FILE | {"filename": "b.txt"}]},
    {"attachments": [FILE | {"content": base64.b64encode(b"Hello, World").decode()}]},
    {"attachments": [FILE | {"content_type": "text/csv"}]},
    {"attachments": [FILE | {"content_id": "a"}]},
]


def test_requests_that_differ_in_anything_else_are_not() -> None:
    hashes = {hashed(**changes) for changes in DIFFERENT}
    assert len(hashes) == len(DIFFERENT)
    assert {len(digest) for digest in hashes} == {32}


def test_the_normal_form_stays_what_it_is() -> None:
    """A stored hash outlives a restart: another form would make a conflict of each repeated request."""
    changes = {
        "cc": "bob@example.org",
        "reply_to": "help@example.com",
        "headers": {"X-B": "2", "X-A": "1"},
        "tags": ["a"],
        "attachments": [FILE],
    }
    assert hashed(**changes).hex() == "13200d0fc0b2aec5953224914104560c3d07b38eb5698336b6f815e04499637d"
