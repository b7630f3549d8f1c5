"""Forwards received mail to its own account: as it is, through the queue that all mail of the account goes through.

What its signatures cover stays as it was, so that receiving hosts can trust them. Its envelope sender is a return path
of ours, as of any message: SPF is that of the account, and a bounce comes back here and stands with the forwarded
message; nobody bounces to a stranger. It is charged and limited like any message, but strangers use up no warm-up. It
is not signed: nothing that a stranger writes gets a signature of the account. Who it goes to is checked each time.

A Delivered-To field ends loops, as those of other mail servers do.
"""

import functools
import itertools
import re
from typing import Final

import msgspec

from postroad import context, errors
from postroad.mail.accept import compose, submit, transaction, validation
from postroad.model.mail import limits, statuses
from postroad.model.people import callers
from postroad.model.units import identifiers
from postroad.protocol.mime import address
from postroad.services.inbound import routes
from postroad.services.messages import received_mail
from postroad.storage.engine import store
from postroad.storage.mail import domains, received

# With room for the fields that are added.
MAX_BYTES: Final = limits.MIME_BYTES - 4096
# The newest come first, and a circle is shorter.
MAX_MARKS: Final = 30
# Of no address, so no domain has a key for it.
_NO_SENDER: Final = ""
_MARKS: Final = re.compile(rb"^delivered-to[ \t]*+:[ \t]*+([^\r\n]*+)", re.IGNORECASE | re.MULTILINE)


class CheckedForward(validation.CheckedMessage, frozen=True, kw_only=True):
    """What the checks of a submission look at. `author` is the From field as people see it."""

    content: bytes
    author: str
    return_path_domain: str

    @property
    def size(self) -> int:
        return len(self.content)


def is_loop(head: bytes, recipient: str) -> bool:
    """Whether a mail with this header was delivered to the recipient before."""
    marks = itertools.islice(_MARKS.findall(head), MAX_MARKS)
    return address.key_of(recipient) in {address.key_of(mark.decode("utf-8", "replace").strip()) for mark in marks}


async def forward(
    ctx: context.Context,
    route: received.Route,
    content: bytes,
    *,
    mail: received_mail.ReceivedMail,
    recipient: str,
    key: str,
) -> bool:
    """Queue a mail for the address of its route; False if it cannot go there now.

    `mail` is what its header says, and `key` is the same for the same mail. Raises a PostroadError if the store fails.
    """
    to = route.forward_to or ""
    async with ctx.store.reading() as tx:
        domain = await domains.by_id(tx, route.account_id, route.domain_id)
        if domain is None or not await routes.is_own(tx, route.account_id, to):
            return False
    checked = CheckedForward(
        # It is admitted as mail of the domain that the route belongs to.
        sender=address.parse(f"postmaster@{domain.name}"),
        to=(address.parse(to),),
        cc=(),
        bcc=(),
        reply_to=(),
        recipients=(address.parse(to),),
        subject=mail.subject[: limits.SUBJECT_CHARACTERS],
        tags=(),
        content=b"Delivered-To: %b\r\n%b" % (recipient.encode(), content),
        author=received_mail.shown(mail.sender),
        # Its mail arrives here: so do bounces.
        return_path_domain=domain.return_path_domain or route.match_key.rpartition("@")[2],
    )
    who = callers.Caller(route.account_id, None, callers.Scheme.TOKEN, frozenset({callers.Permission.SEND}))
    info = submit.SubmissionInfo(
        request_id=ctx.new_id(identifiers.REQUEST, now=ctx.clock()),
        source=statuses.Source.SMTP,
        key=transaction.Key(submit.sending_identity(who), f"inbound {key}", key.encode()),
    )
    try:
        await submit.accept(ctx, who, checked, info, functools.partial(_compose, checked))
    except store.UNAVAILABLE:
        raise
    except errors.PostroadError as refusal:
        submit.note_refusal(ctx, who, info.source, refusal)
        return False
    return True


def _compose(checked: CheckedForward, identity: compose.MessageIdentity) -> transaction.Submission:
    submission = compose.build_submission(checked, identity, body=checked.content)
    message = msgspec.structs.replace(
        submission.message,
        sender=checked.author,
        sender_key=_NO_SENDER,
        return_path_domain=checked.return_path_domain,
    )
    return msgspec.structs.replace(submission, message=message, warmup_domain=None)
