"""Mail with a list: over HTTP, in batches, from templates and over SMTP, and what cannot have one."""

import email

import msgspec
import pytest

from postroad import context, errors
from postroad.mail import unsubscribe_links
from postroad.mail.accept import compose, mime_validation, submit_batch, submit_mime, validation
from postroad.model.mail import send_request
from postroad.protocol.signatures import dkim
from postroad.services.messages import resend
from postroad.services.templates import templates
from postroad.storage.mail import messages, queue
from tests import accepted_mail
from tests.contexts import with_settings
from tests.services.mime_messages import plain

SMTP = "X-Service-Unsubscribe"
NEWS = send_request.Unsubscribe("news")
REQUEST = send_request.SendRequest(
    sender="shop@example.com", to="ada@example.org", subject="Hello", text="Hi", unsubscribe=NEWS
)


@pytest.fixture
def sending(ctx: context.Context) -> context.Context:
    return with_settings(ctx, "http", base_url="https://mail.example.com")


async def stored(ctx: context.Context, sender: str, message_id: str) -> tuple[email.message.Message, str | None]:
    """The message as it is sent, and the list in its row of the queue."""
    async with ctx.store.transaction() as tx:
        body = await messages.body(tx, sender, message_id)
        keys = await queue.queue_keys(tx, after="", limit=100)
        wanted = [queue.ClaimRequest(key, 100) for key in keys]
        claimed = await queue.claim(tx, wanted, lease_until=ctx.clock(), worker="w")
    assert body is not None
    lists = {row.message_id: row.list_name for row in claimed}
    return email.message_from_bytes(body), lists[message_id]


def link_of(ctx: context.Context, sent: email.message.Message) -> unsubscribe_links.Link:
    (value,), (post,) = sent.get_all("List-Unsubscribe", []), sent.get_all("List-Unsubscribe-Post", [])
    assert post == "List-Unsubscribe=One-Click"
    assert value.startswith("<https://mail.example.com/unsubscribe/")
    link = unsubscribe_links.read(ctx.keys, value[1:-1].rpartition("/")[2])
    assert link is not None
    return link


async def test_a_send_with_a_list_has_a_link_for_its_recipient(sending: context.Context, sender: str) -> None:
    message_id = await accepted_mail.accept(sending, sender, to="Ada@Example.net", unsubscribe=NEWS)
    sent, list_name = await stored(sending, sender, message_id)
    assert list_name == "news"
    expected = unsubscribe_links.Link(sender, "news", "ada@example.net", message_id, "example.com")
    assert link_of(sending, sent) == expected
    async with sending.store.reading() as tx:
        body = await messages.body(tx, sender, message_id)
    names = "".join(dkim.cover(body or b"").names.split()).split(":")
    # Once more than they are there (RFC 6376 section 8.15).
    assert (names.count("list-unsubscribe"), names.count("list-unsubscribe-post")) == (2, 2)


async def test_mail_without_a_list_has_no_link(sending: context.Context, sender: str) -> None:
    message_id = await accepted_mail.accept(sending, sender)
    sent, list_name = await stored(sending, sender, message_id)
    assert (sent.get("List-Unsubscribe"), sent.get("List-Unsubscribe-Post"), list_name) == (None, None, None)


async def test_a_template_for_many_has_a_link_for_each(sending: context.Context, sender: str) -> None:
    await templates.put(sending, sender, "hi", subject="Hi", text="Hi {{name}}", html=None)
    request = send_request.BatchRequest(
        sender="shop@example.com",
        template="hi",
        unsubscribe=NEWS,
        recipients=(
            send_request.BatchRecipient(to="ada@example.net", variables={"name": "Ada"}),
            send_request.BatchRecipient(to="bob@example.net", variables={"name": "Bob"}),
        ),
    )
    accepted = await submit_batch.submit_batch(
        sending, accepted_mail.caller_of(sender), request, request_id="req_1", key="k"
    )
    results = msgspec.json.decode(accepted.response, type=send_request.BatchReceipt).results
    ada, _ = await stored(sending, sender, str(results[0].id))
    async with sending.store.reading() as tx:
        bob = email.message_from_bytes(await messages.body(tx, sender, str(results[1].id)) or b"")
    assert [link_of(sending, sent).email_key for sent in (ada, bob)] == ["ada@example.net", "bob@example.net"]


@pytest.mark.parametrize("with_template", [False, True])
async def test_a_field_names_the_list_over_smtp_and_is_not_sent(
    sending: context.Context, sender: str, *, with_template: bool
) -> None:
    fields = [f"{SMTP}: =?utf-8?q?n=C3=BCtzlich?="]
    if with_template:
        await templates.put(sending, sender, "hi", subject="Hi", text="Hi", html=None)
        fields.append("X-Service-Template: hi")
    raw = plain(*fields, body="" if with_template else "Hi\r\n")
    accepted = await submit_mime.submit_mime(sending, accepted_mail.caller_of(sender), raw, request_id="req_1")
    sent, list_name = await stored(sending, sender, accepted.message_id)
    assert (list_name, link_of(sending, sent).list_name, sent.get(SMTP)) == ("nützlich", "nützlich", None)


async def test_the_receipt_has_the_list_and_a_resend_keeps_it(sending: context.Context, sender: str) -> None:
    message_id = await accepted_mail.accept(sending, sender, unsubscribe=NEWS)
    async with sending.store.transaction() as tx:
        found = await messages.response(tx, sender, message_id)
        (row,) = await messages.recipients(tx, sender, message_id)
        ended = messages.RecipientUpdate(sender, message_id, row.id, "failed", "released", 1, *[None] * 5)
        await messages.record_results(tx, [ended])
        await queue.remove(tx, [(sender, message_id, row.id)])
    assert found is not None
    assert msgspec.json.decode(found[0])["unsubscribe"] == {"list": "news"}
    again = await resend.resend(
        sending,
        accepted_mail.caller_of(sender),
        message_id,
        to=resend.Recipients.FAILED,
        request_id="req_2",
        key="again",
    )
    sent, list_name = await stored(sending, sender, again.message_id)
    assert (list_name, link_of(sending, sent).message_id) == ("news", again.message_id)


async def test_without_a_public_url_the_send_is_refused(ctx: context.Context, sender: str) -> None:
    with pytest.raises(errors.InvalidRequest, match=r"the operator sets http\.base_url"):
        await accepted_mail.accept(ctx, sender, unsubscribe=NEWS)
    assert await accepted_mail.accept(ctx, sender)


@pytest.mark.parametrize(
    "changed, said",
    [
        (
            {"to": ("ada@example.org", "bob@example.org")},
            "unsubscribe.list: the unsubscribe link is for one recipient, but the message has 2; send a batch",
        ),
        ({"cc": "bob@example.org"}, "unsubscribe.list: the unsubscribe link is for one recipient"),
        ({"bcc": "bob@example.org"}, "unsubscribe.list: the unsubscribe link is for one recipient"),
        (
            {"headers": {"list-UNSUBSCRIBE": "<https://example.com/>"}},
            "unsubscribe.list: cannot be combined with your own List-Unsubscribe headers; use one",
        ),
        (
            {"headers": {"List-Unsubscribe-Post": "List-Unsubscribe=One-Click"}},
            "unsubscribe.list: cannot be combined with your own List-Unsubscribe headers; use one",
        ),
        ({"unsubscribe": send_request.Unsubscribe("")}, "unsubscribe.list: must be 1 to 128 characters on one line"),
        (
            {"unsubscribe": send_request.Unsubscribe("a" * 129)},
            "unsubscribe.list: must be 1 to 128 characters on one line",
        ),
        (
            {"unsubscribe": send_request.Unsubscribe("a\r\nBcc: x@example.org")},
            "unsubscribe.list: must be 1 to 128 characters on one line",
        ),
        ({"unsubscribe": send_request.Unsubscribe("a\0")}, "unsubscribe.list: "),
    ],
)
def test_what_cannot_have_a_list_is_refused(changed: dict[str, object], said: str) -> None:
    with pytest.raises(errors.InvalidRequest) as refused:
        validation.check(msgspec.structs.replace(REQUEST, **changed))
    assert refused.value.message.startswith(said)


@pytest.mark.parametrize(
    "fields, said",
    [
        ([f"{SMTP}: a", f"{SMTP}: b"], f"{SMTP}: the field occurs 2 times"),
        ([f"{SMTP}:"], f"{SMTP}: must be 1 to 128 characters on one line"),
        ([f"{SMTP}: =?utf-8?q?a=0D=0ABcc:_x?="], f"{SMTP}: "),
        ([f"{SMTP}: a", "List-Unsubscribe: <https://example.com/>"], f"{SMTP}: cannot be combined with your own"),
    ],
)
def test_a_field_that_names_no_list_is_refused(fields: list[str], said: str) -> None:
    with pytest.raises(errors.InvalidRequest) as refused:
        mime_validation.check(plain(*fields))
    assert refused.value.message.startswith(said)
    with pytest.raises(errors.InvalidRequest, match="is for one recipient, but the message has 2"):
        mime_validation.check(plain(f"{SMTP}: a", to=("ada@example.org", "bob@example.org")))


def test_another_list_is_another_request() -> None:
    hashes = {
        compose.body_hash(validation.check(msgspec.structs.replace(REQUEST, unsubscribe=unsubscribe)))
        for unsubscribe in (None, NEWS, send_request.Unsubscribe("other"))
    }
    assert len(hashes) == 3
