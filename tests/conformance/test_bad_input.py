"""Bad input: whatever arrives is answered with a documented 4xx and the error object; nothing of it is stored."""

import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests import raw_http
from tests.conformance import live_service
from tests.conformance.live_service import ABSENT

GOOD = json.dumps(live_service.message()).encode()


def with_text(text: bytes) -> bytes:
    """The good body with another value for `text`, written by hand."""
    return GOOD.replace(b'"Hi"', text)


NOT_JSON: dict[str, bytes] = {
    "nothing": b"",
    "white space": b"  \r\n",
    "cut off": GOOD[:-1],
    "something behind it": GOOD + b"x",
    "two values": GOOD + GOOD,
    "a form": b"from=shop%40example.com",
    "XML": b"<mail/>",
    "single quotes": GOOD.replace(b'"', b"'"),
    "a comma too many": GOOD[:-1] + b",}",
    "a comment": b"/* */" + GOOD,
    "a byte order mark": b"\xef\xbb\xbf" + GOOD,
    "UTF-16": GOOD.decode().encode("utf-16"),
    "Latin-1": with_text(b'"\xfc"'),
    "an overlong form": with_text(b'"\xc0\xaf"'),
    "half a surrogate pair": with_text(b'"\\ud800"'),
    "the other half": with_text(b'"\\udc00 x"'),
    "a surrogate in UTF-8": with_text(b'"\xed\xa0\x80"'),
    "half a surrogate pair as a name": GOOD.replace(b'"text"', b'"\\ud800"'),
    "a control character": with_text(b'"a\x01b"'),
    "a line break in a string": with_text(b'"a\nb"'),
    "an unknown escape": with_text(b'"\\x41"'),
    "NaN": with_text(b"NaN"),
    "Infinity": with_text(b"-Infinity"),
    "a number too large": with_text(b"1e999"),
    "a number of a million digits": with_text(b"1" * 1_000_000),
    "a member twice": GOOD[:-1] + b', "text": "Ho"}',
    "a header twice": with_text(b'"Hi", "headers": {"X-A": "1", "X-A": "2"}'),
    "a hundred thousand arrays": b"[" * 100_000,
    "a hundred thousand closed arrays": b"[" * 100_000 + b"]" * 100_000,
    "a hundred thousand objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "deep nesting in a member": with_text(b"[" * 100_000 + b"]" * 100_000),
    "a million values": with_text(b"[" + b"0," * 1_000_000 + b"0]"),
    "a null byte": GOOD + b"\0",
}
NOT_AN_OBJECT = [b"[]", b"null", b"true", b"7", b'"x"', b"[{}]", b"{}"]


def refused(service: live_service.Service, body: bytes) -> str:
    before = service.balance()
    sentence = live_service.check_refusal(service.post(body), 400, "invalid_request")
    assert service.balance() == before
    return sentence


@pytest.mark.parametrize("case", NOT_JSON)
def test_what_is_not_strict_json_is_refused(sqlite_service: live_service.Service, case: str) -> None:
    """Malformed JSON, 100,000-deep nesting, lone surrogates."""
    assert refused(sqlite_service, NOT_JSON[case])


@pytest.mark.parametrize("body", NOT_AN_OBJECT)
def test_what_is_not_an_object_is_refused(service: live_service.Service, body: bytes) -> None:
    """Wrong types: the body is one JSON object, and not an empty one."""
    assert refused(service, body)


# CR, LF and their relatives in every string

LINE_BREAKS = {
    "CRLF and a header": "\r\nBcc: eve@example.net",
    "LF": "\n",
    "CR": "\r",
    "CR CR LF": "\r\r\n",
    "NUL": "\0",
    "vertical tab": "\x0b",
    "form feed": "\x0c",
    "next line": "\x85",
    "line separator": "\u2028",
    "paragraph separator": "\u2029",
    "an encoded word": "=?utf-8?q?=0D=0ABcc:_eve@example.net?=",
}
FIELDS: dict[str, Callable[[str], dict[str, Any]]] = {
    "from": lambda evil: {"from_": f"shop{evil}@example.com"},
    "from's name": lambda evil: {"from_": f'"Shop{evil}" <shop@example.com>'},
    "from's bare name": lambda evil: {"from_": f"Shop{evil} <shop@example.com>"},
    "from's domain": lambda evil: {"from_": f"shop@example.com{evil}"},
    "to": lambda evil: {"to": f"ada@example.org{evil}"},
    "to's name": lambda evil: {"to": [f'"Ada{evil}" <ada@example.org>']},
    "cc": lambda evil: {"cc": f"ada{evil}@example.org"},
    "bcc": lambda evil: {"bcc": f"ada{evil}@example.org"},
    "reply_to": lambda evil: {"reply_to": f"Help{evil} <help@example.com>"},
    "subject": lambda evil: {"subject": f"Hello{evil}"},
    "subject's beginning": lambda evil: {"subject": f"{evil}Hello"},
    "template": lambda evil: {"template": f"welcome{evil}", "text": ABSENT},
    "a variable in a subject": lambda evil: {
        "template": "welcome",
        "variables": {"name": f"Ada{evil}"},
        "text": ABSENT,
        "subject": ABSENT,
    },
    "a header's name": lambda evil: {"headers": {f"X-A{evil}": "x"}},
    "a header's value": lambda evil: {"headers": {"X-A": f"x{evil}"}},
    "a tag": lambda evil: {"tags": [f"a{evil}"]},
    "filename": lambda evil: {"attachments": [{"filename": f"a{evil}.txt", "content": ""}]},
    "content_type": lambda evil: {
        "attachments": [{"filename": "a", "content": "", "content_type": f"text/plain{evil}"}]
    },
    "content_type's parameter": lambda evil: {
        "attachments": [{"filename": "a", "content": "", "content_type": f'text/plain; a="{evil}"'}]
    },
    "content_id": lambda evil: {"attachments": [{"filename": "a", "content": "", "content_id": f"a{evil}"}]},
}


@pytest.mark.parametrize("kind", LINE_BREAKS)
@pytest.mark.parametrize("field", FIELDS)
def test_no_string_carries_a_line_break_into_a_header(
    sqlite_service: live_service.Service, field: str, kind: str
) -> None:
    """CR/LF in every string field that reaches a header."""
    sqlite_service.refuse(**FIELDS[field](LINE_BREAKS[kind]))


def test_a_line_break_in_a_body_stays_in_the_body(service: live_service.Service) -> None:
    """CR/LF where it belongs: no header comes of it."""
    evil = "\r\n\r\nBcc: eve@example.net\r\n.\r\nMAIL FROM:<eve@example.net>\r\n"
    parsed = service.sent(text=evil, html=evil)
    assert parsed["Bcc"] is None
    assert live_service.text_of(parsed, "plain") == evil.replace("\r\n", "\n").removesuffix("\n")


# The request around the body


async def test_a_length_that_promises_too_much_stores_nothing(service: live_service.Service) -> None:
    """A body that ends too early: there is nobody to answer, and nothing is stored."""
    before = service.balance()
    fields = (f"Authorization: {service.mine.basic}", f"Idempotency-Key: {live_service.new_key()}")
    async with raw_http.connect(service.address) as connection:
        await connection.send(raw_http.post("/emails", GOOD, *fields, length=len(GOOD) + 1))
        connection.writer.write_eof()
        assert await connection.rest() == b""
    assert service.balance() == before


async def test_a_length_that_promises_too_little_is_cut_there(service: live_service.Service) -> None:
    """What comes behind the promised length is no part of the body."""
    before = service.balance()
    fields = (f"Authorization: {service.mine.basic}", f"Idempotency-Key: {live_service.new_key()}")
    request = raw_http.post("/emails", GOOD, *fields, length=len(GOOD) - 1)
    response = await raw_http.exchange(service.address, request)
    assert (response.status, response.json()["code"]) == (400, "invalid_request")
    assert service.balance() == before


def test_a_compressed_body_is_refused(service: live_service.Service) -> None:
    """Content codings: a small body could become a very large one, so none is taken."""
    before = service.balance()
    response = service.post(gzip.compress(GOOD), headers={"Content-Encoding": "gzip"})
    assert live_service.check_refusal(response, 400, "invalid_request").startswith("Content-Encoding: ")
    assert service.balance() == before


@pytest.mark.parametrize(
    "method, path", [("POST", "/v1/auth/login"), ("POST", "/v1/domains"), ("PUT", "/v1/templates/a")]
)
def test_every_other_route_that_takes_json_is_as_strict(service: live_service.Service, method: str, path: str) -> None:
    """The same checks everywhere: deep nesting, wrong types and too much are refused on the management routes, too."""
    headers = {"Authorization": service.mine.owner, "Content-Type": "application/json"}
    for body in (b"", b"[]", b"{", b"[" * 10_000, b'{"name": "\\ud800"}', b'{"a": 1, "a": 2}'):
        response = service.client.request(method, path, content=body, headers=headers)
        live_service.check_refusal(response, 400, "invalid_request")
    response = service.client.request(method, path, content=b" " * 1_100_000, headers=headers)
    live_service.check_refusal(response, 413, "payload_too_large")


def test_all_of_it_together_leaves_nothing_behind(service: live_service.Service) -> None:
    """Nothing stored: `postroad verify` counts the same before and after all of the above."""
    before = service.counts()
    bodies = [*NOT_JSON.values(), *NOT_AN_OBJECT]
    evils = LINE_BREAKS.values()
    bodies += [json.dumps(live_service.message(**make(evil))).encode() for make in FIELDS.values() for evil in evils]
    for body in bodies:
        assert service.post(body).status_code == 400
    assert service.counts() == before
