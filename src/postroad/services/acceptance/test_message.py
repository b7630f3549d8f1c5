"""Trying it out: one message that a person sends to see mail arrive, from a domain of their account.

It goes the way of all mail, by the same rules and for a credit; only its source says that it is a test. Its words are
fixed, unless somebody tries out a template.
"""

import contextlib
from typing import Final

from postroad import errors
from postroad.model import caller, mail, times
from postroad.services import context, templates
from postroad.services.acceptance import submit, transaction
from postroad.services.domains import registry as domains

SENDER: Final = "hello"
# Whoever has more domains than this knows from which to send.
MAX_DOMAINS: Final = 100
SUBJECT: Final = "It works: your test email from Postroad"

TEXT: Final = """\
Hello!

Postroad sent you this test email on {day} at {time} UTC. If you can read it, mail from your account arrives.

What to look at next:

- The message's page shows every attempt: which server took it, with which reply, and how long that took.
- Set a webhook, and your application is told what became of each message.
- Make an API key or an SMTP credential, and send from your application.

Nobody needs to reply to this.
"""
HTML: Final = """\
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{subject}</title></head>
<body style="margin:0;padding:24px;font-family:system-ui,sans-serif;line-height:1.5;color:#1c2430;background:#fff">
<div style="max-width:560px;margin:0 auto">
<h1 style="font-size:22px">It works.</h1>
<p>Postroad sent you this test email on {day} at {time} UTC. If you can read it, mail from your account arrives.</p>
<p><strong>What to look at next:</strong></p>
<ul>
<li>The message's page shows every attempt: which server took it, with which reply, and how long that took.</li>
<li>Set a webhook, and your application is told what became of each message.</li>
<li>Make an API key or an SMTP credential, and send from your application.</li>
</ul>
<p style="color:#5b6675">Nobody needs to reply to this.</p>
</div>
</body>
</html>
"""


async def send_test(
    ctx: context.Context, who: caller.Caller, *, sender: str, to: str, request_id: str
) -> transaction.Accepted:
    """Send the test message; refused like any other, by the same rules."""
    return await _send(ctx, who, _message(sender=sender, to=to, now=ctx.clock()), request_id=request_id)


async def send_rendered(
    ctx: context.Context, who: caller.Caller, content: templates.Rendered, *, sender: str, to: str, request_id: str
) -> transaction.Accepted:
    """Send what a template has become, so that somebody sees it in a mailbox."""
    request = mail.SendRequest(sender=sender, to=(to,), subject=content.subject, text=content.text, html=content.html)
    return await _send(ctx, who, request, request_id=request_id)


async def default_sender(ctx: context.Context, account_id: str) -> str | None:
    """An address from which the account may send, of its first domain that may; those that are proven come first."""
    return next(iter(await senders(ctx, account_id, limit=1)), None)


async def senders(ctx: context.Context, account_id: str, *, limit: int) -> list[str]:
    """Addresses from which the account may send, one of each domain; of those that are proven first."""
    known = await domains.of_account(ctx, account_id, limit=MAX_DOMAINS)
    found: list[str] = []
    for domain in sorted(known, key=lambda domain: domain.verified_at is None):
        if len(found) < limit:
            with contextlib.suppress(errors.Forbidden):
                found.append(f"{SENDER}@{(await submit.own_domain(ctx, account_id, domain.name)).name}")
    return found


async def _send(
    ctx: context.Context, who: caller.Caller, request: mail.SendRequest, *, request_id: str
) -> transaction.Accepted:
    # Without an idempotency key: whoever asks twice wants two.
    info = submit.SubmissionInfo(request_id=request_id, source=mail.Source.TEST, key=None)
    return await submit.submit(ctx, who, request, info)


def _message(*, sender: str, to: str, now: int) -> mail.SendRequest:
    day, _, time = times.to_wire(now).partition("T")
    words = {"subject": SUBJECT, "day": day, "time": time[:5]}
    return mail.SendRequest(
        sender=sender, to=(to,), subject=SUBJECT, text=TEXT.format(**words), html=HTML.format(**words)
    )
