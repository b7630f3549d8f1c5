"""Metadata: what a caller may say, over HTTP and SMTP, where it comes back, and that it is never sent."""

import msgspec
import pytest

from postroad import context, errors
from postroad.mail.accept import mime_validation, submit_mime, validation
from postroad.model.mail import send_request, statuses
from postroad.services.messages import lookup as messages
from postroad.services.templates import templates
from tests import accepted_mail
from tests.services.mime_messages import FROM, TO, plain, raw

SMTP = "X-Service-Metadata-"


def over_http(metadata: dict[str, str]) -> validation.CheckedSend:
    return validation.check(
        send_request.SendRequest(
            sender="shop@example.com", to="ada@example.org", subject="Hello", text="Hi", metadata=metadata
        )
    )


def test_what_is_not_given_is_empty() -> None:
    assert over_http({}).metadata == {}
    assert mime_validation.check(plain()).metadata == {}


def test_20_keys_of_40_characters_with_values_of_500_pass() -> None:
    full = {f"{number:-<40}": "ü" * 500 for number in range(20)}
    assert over_http(full).metadata == full
    assert over_http({"A-z_0": "", "a": "two\nlines"}).metadata == {"A-z_0": "", "a": "two\nlines"}


@pytest.mark.parametrize(
    "metadata, said",
    [
        ({str(number): "" for number in range(21)}, "metadata: 21 keys; at most 20 are allowed"),
        ({"": "x"}, "metadata.'': a key must have 1 to 40 of the characters"),
        ({"a" * 41: "x"}, f"metadata.'{'a' * 41}': a key must have 1 to 40"),
        ({"a.b": "x"}, "metadata.'a.b': a key must have 1 to 40"),
        ({"a\n": "x"}, "metadata.'a\\n': a key must have 1 to 40"),
        ({"ä": "x"}, "metadata.'ä': a key must have 1 to 40"),
        ({"order": "x" * 501}, "metadata.order: has 501 characters; at most 500 are allowed"),
        ({"order": "a\0b"}, "metadata.order: U+0000 and lone surrogates are not allowed"),
        ({"order": "a\ud800"}, "metadata.order: U+0000 and lone surrogates are not allowed"),
    ],
)
def test_what_is_no_metadata_is_refused_with_its_place(metadata: dict[str, str], said: str) -> None:
    with pytest.raises(errors.InvalidRequest) as refused:
        over_http(metadata)
    assert refused.value.message.startswith(said)


def test_fields_become_metadata_with_keys_as_written() -> None:
    message = plain(f"{SMTP}Order: 1042", "x-service-metadata-city: =?utf-8?q?M=C3=BCnchen?=", f"{SMTP}None:")
    assert mime_validation.check(message).metadata == {"Order": "1042", "city": "München", "None": ""}


@pytest.mark.parametrize(
    "fields, said",
    [
        ([f"{SMTP}{number}: x" for number in range(21)], "X-Service-Metadata: 21 keys; at most 20 are allowed"),
        ([f"{SMTP}: x"], "X-Service-Metadata-'': a key must have 1 to 40"),
        ([f"{SMTP}{'a' * 41}: x"], f"X-Service-Metadata-'{'a' * 41}': a key must have 1 to 40"),
        ([f"{SMTP}a.b: x"], "X-Service-Metadata-'a.b': a key must have 1 to 40"),
        ([f"{SMTP}order: {'x' * 501}"], "X-Service-Metadata-order: has 501 characters"),
        ([f"{SMTP}order: =?utf-8?q?a=00b?="], "X-Service-Metadata-order: U+0000"),
        ([f"{SMTP}Order: 1", f"{SMTP}order: 2"], "X-Service-Metadata-Order: the field occurs 2 times; send it once"),
        (["X-Service-Metadata: x"], "X-Service-Metadata: unknown field"),
    ],
)
def test_fields_that_are_no_metadata_are_refused(fields: list[str], said: str) -> None:
    with pytest.raises(errors.InvalidRequest) as refused:
        mime_validation.check(plain(*fields))
    assert refused.value.message.startswith(said)


async def test_metadata_over_http_is_returned_and_found_and_not_sent(ctx: context.Context, sender: str) -> None:
    given = {"order": "1042-3344", "note": 'a "b" \n:c'}
    message_id = await accepted_mail.accept(ctx, sender, metadata=given)
    other = await accepted_mail.accept(ctx, sender)
    shown = await messages.details(ctx, sender, message_id)
    assert shown.receipt.metadata == given
    assert shown.message.metadata is not None
    assert msgspec.json.decode(shown.message.metadata) == given
    assert b"1042-3344" not in await messages.raw(ctx, sender, message_id)
    plain_one = await messages.details(ctx, sender, other)
    assert (plain_one.receipt.metadata, plain_one.message.metadata) == (msgspec.UNSET, None)
    assert b"metadata" not in msgspec.json.encode(plain_one.receipt)

    async def found(text: str, account_id: str = sender) -> list[str]:
        return [one.id for one in (await messages.search(ctx, account_id, text, limit=9, cursor=None)).messages]

    assert await found("metadata.order:1042-3344") == [message_id]
    assert await found('metadata.note:"a ""b"" \n:c"') == [message_id]
    assert await found("metadata.order:104") == await found("metadata.Order:1042-3344") == []
    assert await found("metadata.order:1042-3344", "acc_" + "0" * 28) == []


@pytest.mark.parametrize("template", [(), ("X-Service-Template: welcome",)], ids=["finished", "template"])
async def test_metadata_over_smtp_is_stored_and_not_sent(
    ctx: context.Context, sender: str, template: tuple[str, ...]
) -> None:
    await templates.put(ctx, sender, "welcome", subject="Welcome", text="Hi", html=None)
    message = raw(FROM, TO, *template, f"{SMTP}Order: 1042-3344", "X-Other: 1043", body="" if template else "Hi\r\n")
    accepted = await submit_mime.submit_mime(ctx, accepted_mail.caller_of(sender), message, request_id="req_1")
    sent = await messages.raw(ctx, sender, accepted.message_id)
    assert b"X-Other: 1043" in sent
    assert b"1042-3344" not in sent
    assert b"metadata" not in sent.lower()
    assert msgspec.json.decode(accepted.response, type=send_request.Receipt).metadata == {"Order": "1042-3344"}
    (found,) = (await messages.search(ctx, sender, "metadata.Order:1042-3344", limit=9, cursor=None)).messages
    assert (found.id, found.source) == (accepted.message_id, statuses.Source.SMTP)
