"""Every limit of `model/mail/limits.py` at its boundary and one beyond, over HTTP and over SMTP, by one table."""

import dataclasses
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from postroad.model.mail import limits
from tests.contexts import Clock
from tests.submission.both_listeners import ALIAS, Listeners, Mime, both, served, switch

__all__ = ["both", "served", "switch"]


def people(count: int) -> list[str]:
    return [f"person{number}@example.org" for number in range(count)]


@dataclasses.dataclass(frozen=True)
class Case:
    """A limit, what is sent to use this much of it, and the SMTP reply to one more."""

    limit: int
    fields: Callable[[int], dict[str, Any]]
    mime: Callable[[int], Mime]
    reply: int = 550
    status: int = 400


def files(count: int) -> Mime:
    """A text, and so many files; some are marked by their name, some by their disposition, some by their type."""
    marks = (
        'Content-Type: text/plain; name="a.txt"',
        "Content-Disposition: attachment",
        "Content-Type: image/png\r\nContent-ID: <logo>",
        "Content-Type: message/rfc822",
    )
    parts = ["Content-Type: text/plain\r\n\r\nHi", "Content-Type: text/html\r\nContent-Disposition: inline\r\n\r\n<p>"]
    parts += [f"{marks[number % len(marks)]}\r\n\r\nSubject: x" for number in range(count)]
    return multipart(parts)


def multipart(parts: Sequence[str]) -> Mime:
    body = "".join(f"--b\r\n{part}\r\n" for part in parts) + "--b--\r\n"
    return Mime(["MIME-Version: 1.0", 'Content-Type: multipart/mixed; boundary="b"'], body)


def named_file(length: int) -> Mime:
    """A file whose name is long, in the pieces of RFC 2231."""
    pieces = [f'; filename*{at // 50}="{"x" * min(50, length - at)}"' for at in range(0, length, 50)]
    return multipart(["Content-Disposition: attachment" + "\r\n ".join(["", *pieces]) + "\r\n\r\nHi"])


def from_template(variables: int) -> dict[str, Any]:
    return {"template": ALIAS, "text": None, "variables": {f"v{number}": number for number in range(variables)}}


CASES = {
    "SUBJECT_CHARACTERS": Case(500, lambda n: {"subject": "x" * n}, lambda n: Mime([f"Subject: {'x' * n}"])),
    "UNIQUE_RECIPIENTS": Case(50, lambda n: {"to": people(n)}, lambda n: Mime(to=people(n)), reply=452),
    # Only a template's Reply-To is written by Postroad; another one is sent as it is.
    "REPLY_TO_ADDRESSES": Case(
        10,
        lambda n: {"reply_to": people(n)},
        lambda n: Mime([f"X-Service-Template: {ALIAS}", f"Reply-To: {', '.join(people(n))}"], ""),
    ),
    "ATTACHMENTS": Case(20, lambda n: {"attachments": [{"filename": "a.txt", "content": "QQ=="}] * n}, files),
    "TAGS": Case(
        20,
        lambda n: {"tags": [f"tag{number}" for number in range(n)]},
        lambda n: Mime([f"X-Service-Tag: tag{number}" for number in range(n)]),
    ),
    "TAG_CHARACTERS": Case(128, lambda n: {"tags": "x" * n}, lambda n: Mime([f"X-Service-Tag: {'x' * n}"])),
    "METADATA_KEYS": Case(
        20,
        lambda n: {"metadata": {f"key{number}": "x" for number in range(n)}},
        lambda n: Mime([f"X-Service-Metadata-key{number}: x" for number in range(n)]),
    ),
    "METADATA_VALUE_CHARACTERS": Case(
        500, lambda n: {"metadata": {"key": "x" * n}}, lambda n: Mime([f"X-Service-Metadata-key: {'x' * n}"])
    ),
    "VARIABLES": Case(
        32,
        from_template,
        lambda n: Mime(
            [f"X-Service-Template: {ALIAS}", f"X-Service-Variables: {json.dumps(from_template(n)['variables'])}"], ""
        ),
    ),
    "CUSTOM_HEADERS": Case(
        50,
        lambda n: {"headers": {f"X-{number}": "x" for number in range(n)}},
        lambda n: Mime([*[f"X-{number}: x" for number in range(n)], "Received: by a; b", "DKIM-Signature: v=1"]),
    ),
    "HEADER_NAME_CHARACTERS": Case(
        76, lambda n: {"headers": {"X-" + "a" * (n - 2): "x"}}, lambda n: Mime([f"X-{'a' * (n - 2)}: x"])
    ),
    "HEADER_LINE_OCTETS": Case(
        998, lambda n: {"headers": {"X-A": "x" * (n - 5)}}, lambda n: Mime([f"X-A: {'x' * (n - 5)}"])
    ),
    "FILENAME_CHARACTERS": Case(255, lambda n: {"attachments": [{"filename": "x" * n, "content": "QQ=="}]}, named_file),
    "TEMPLATE_ALIAS_CHARACTERS": Case(
        64, lambda n: {"template": "x" * n, "text": None}, lambda n: Mime([f"X-Service-Template: {'x' * n}"], "")
    ),
}
# Their own tests are below.
OTHERS = {"MIME_BYTES", "IDEMPOTENCY_KEY_CHARACTERS", "IDEMPOTENCY_KEY_SECONDS", "TEMPLATE_ALIAS_PATTERN"}
# test_metadata.py, model/test_send_request.py, test_mail_options.py, test_validation.py and test_unsubscribe.py have
# theirs.
OTHERS |= {"LIST_CHARACTERS"}
OTHERS |= {"VARIABLE_DEPTH", "VARIABLE_VALUES"}
OTHERS |= {"METADATA_KEY_PATTERN", "SEND_AT_DAYS", "SEND_AT_TOLERANCE_SECONDS"}
OTHERS |= {"MIN_EXPIRES_IN_SECONDS", "MAX_EXPIRES_IN_SECONDS"}


def test_every_limit_has_its_case() -> None:
    assert {name for name in vars(limits) if name.isupper()} == set(CASES) | OTHERS


@pytest.mark.parametrize("name", CASES)
async def test_a_limit_holds_at_both_listeners(both: Listeners, name: str) -> None:
    case = CASES[name]
    assert getattr(limits, name) == case.limit
    accepted = await both.post(**case.fields(case.limit))
    assert accepted.status_code == 202, accepted.text
    assert await both.submit(case.mime(case.limit)) == 250
    refused = await both.post(**case.fields(case.limit + 1))
    assert (refused.status_code, refused.json()["code"]) == (case.status, "invalid_request")
    assert await both.submit(case.mime(case.limit + 1)) == case.reply
    assert len(await both.server.stored()) == 2


async def test_a_message_has_ten_mebibytes_at_both_listeners(both: Listeners) -> None:
    def filled(octets: int) -> str:
        lines, rest = divmod(octets, 100)
        return ("x" * 98 + "\r\n") * (lines - 1) + "x" * (98 + rest) + "\r\n"

    assert limits.MIME_BYTES == 10_485_760
    await both.post(text="x\n")
    room = 10_485_760 - len((await both.server.stored())[0].body) + len("x\r\n")
    assert (await both.post(text=filled(room))).status_code == 202
    assert (await both.post(text=filled(room + 1))).status_code == 413
    room = 10_485_760 - len(Mime(body="").content)
    assert await both.submit(Mime(body=filled(room))) == 250
    assert await both.submit(Mime(body=filled(room + 1))) == 552


async def test_a_key_has_255_characters_at_both_listeners(both: Listeners) -> None:
    assert limits.IDEMPOTENCY_KEY_CHARACTERS == 255
    assert (await both.post(key="x" * 255)).status_code == 202
    assert (await both.post(key="x" * 256)).status_code == 400
    assert await both.submit(Mime([f"Idempotency-Key: {'y' * 255}"])) == 250
    assert await both.submit(Mime([f"Idempotency-Key: {'y' * 256}"])) == 550
    assert await both.submit(Mime(["Idempotency-Key:"])) == 550


async def test_a_key_lives_for_a_day_at_both_listeners(both: Listeners, clock: Clock) -> None:
    assert limits.IDEMPOTENCY_KEY_SECONDS == 86_400
    for seconds, stored in ((0, 2), (86_399, 2), (1, 4)):
        clock.pass_seconds(seconds)
        assert (await both.post(key="a")).status_code == 202
        assert await both.submit(Mime(["Idempotency-Key: b"])) == 250
        assert len(await both.server.stored()) == stored
