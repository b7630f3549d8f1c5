"""What the event `email.received` and the API say of a mail."""

import msgspec

from postroad import context
from postroad.mail.authentication import authenticate
from postroad.model.events import events
from postroad.model.units import times
from postroad.services.inbound import attachment_links
from postroad.services.messages import received_mail
from postroad.storage.mail import received

_RESULTS = msgspec.json.Decoder(authenticate.Results)
_SPAM = msgspec.json.Decoder(events.ReceivedSpam)


def make(
    ctx: context.Context, row: received.Received, mail: received_mail.ReceivedMail, *, route: str, now: int
) -> events.ReceivedData:
    """The data of a mail that was parsed; `route` is what its route matches. Links to files begin to expire now."""
    expires_at = now + attachment_links.LIFETIME
    text, html = _cut(mail.text), _cut(mail.html)
    return events.ReceivedData(
        inbound_id=row.id,
        route_id=row.route_id,
        route=route,
        to=row.recipient,
        sender=next((each.address for each in mail.sender), ""),
        envelope_from=row.envelope_sender,
        addresses=events.ReceivedAddresses(
            from_=_addresses(mail.sender),
            to=_addresses(mail.to),
            cc=_addresses(mail.cc),
            reply_to=_addresses(mail.reply_to),
        ),
        subject=mail.subject,
        date=times.optional_to_wire(mail.date),
        message_id=mail.message_id,
        email_id=row.email_id,
        text=text,
        html=html,
        truncated=mail.truncated or text != mail.text or html != mail.html,
        headers=tuple(events.ReceivedHeader(name, value) for name, value in mail.headers),
        authentication=msgspec.convert(authentication(row), events.Authentication, from_attributes=True),
        spam=spam(row),
        attachments=tuple(
            events.ReceivedFile(
                filename=file.filename,
                content_type=file.content_type,
                size=file.size,
                content_id=file.content_id,
                disposition=file.disposition,
                sha256=file.sha256,
                url=attachment_links.make(ctx, row.account_id, row.id, index=file.index, expires_at=expires_at),
            )
            for file in mail.attachments
        ),
        attachments_expire_at=times.to_wire(expires_at) if mail.attachments else None,
        size=row.size,
    )


def authentication(row: received.Received) -> authenticate.Results:
    """What is known about who sent a mail."""
    return _RESULTS.decode(row.authentication)


def spam(row: received.Received) -> events.ReceivedSpam | None:
    """What the spam filter says; None without one."""
    return None if row.spam is None else _SPAM.decode(row.spam)


def _cut(text: str | None) -> str | None:
    return None if text is None else text[: events.BODY_CHARACTERS]


def _addresses(found: tuple[received_mail.Address, ...]) -> tuple[events.ReceivedAddress, ...]:
    return tuple(events.ReceivedAddress(each.address, each.name) for each in found)
