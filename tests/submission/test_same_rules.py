"""Rules beside the limits that hold over HTTP and over SMTP alike, and the two that docs/smtp.md says do not."""

import aiosmtplib
import pytest

from tests.submission.both_listeners import Listeners, Mime, both, served, switch
from tests.submission.submission_server import SENDER

__all__ = ["both", "served", "switch"]


@pytest.mark.parametrize("local", ['"a b"', '"ada"', '"a@b"', '"a\\"b"'])
async def test_a_quoted_local_part_is_refused_wherever_it_is(both: Listeners, local: str) -> None:
    """RFC 5321 section 4.1.2 allows it, and advises against it."""
    quoted = f"{local}@example.com"
    for name in ("from", "to", "cc", "bcc", "reply_to"):
        refused = await both.post(**{name: quoted})
        assert refused.status_code == 400
        assert refused.json()["error"].endswith("quoted local parts are not accepted")
    with pytest.raises(aiosmtplib.SMTPRecipientRefused, match="quoted local parts are not accepted") as recipient:
        await both.send(Mime(to=(quoted,)))
    assert recipient.value.code == 553
    for mime, sender in ((Mime([f"From: {quoted}"]), SENDER), (Mime(), quoted)):
        with pytest.raises(aiosmtplib.SMTPDataError, match="quoted local parts are not accepted") as content:
            await both.send(mime, sender=sender)
        assert content.value.code == 550
    assert await both.server.stored() == []


async def test_a_subject_and_a_body_are_required_over_http_only(both: Listeners) -> None:
    """Over SMTP, monitors and scheduled jobs send mail without them, and RFC 5322 section 3.6 does not ask for them."""
    for fields in ({"subject": ""}, {"subject": None}, {"text": ""}, {"text": None}):
        assert (await both.post(**fields)).status_code == 400
    for mime in (Mime(["Subject:"]), Mime(body=""), Mime(["Subject:"], body="")):
        await both.send(mime)
    await both.send(Mime(without="Subject"))
    assert [one.message.subject for one in await both.server.stored()].count("") == 3
