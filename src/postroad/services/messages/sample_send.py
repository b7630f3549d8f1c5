"""The test message: a fixed message from a domain of the account, sent to see mail arrive.

It is accepted and charged like any other message; its source marks it as a test. Its text is fixed, unless it tests a
template.
"""

import contextlib
from collections.abc import Sequence
from typing import Final

from postroad import context, errors
from postroad.mail.accept import rendering, send_limits, submit, transaction
from postroad.model.mail import send_request, statuses
from postroad.model.people import callers
from postroad.model.units import times
from postroad.services.domains import domain_registry as domains

SENDER: Final = "hello"
# An account with more domains than this chooses its sender itself.
MAX_DOMAINS: Final = 100
SUBJECT: Final = "It works: your test email from Postroad"

TEXT: Final = """\
Hello!

Postroad sent you this test email on {day} at {time} UTC. If you can read it, mail from your account arrives.

Next steps:

- The message's page shows every delivery attempt: the server, its reply and the time it took.
- Set up a webhook to notify your application of delivery results.
- Create an API key or an SMTP credential, and send from your application.

You do not need to reply to this email.
"""
HTML: Final = """\
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{subject}</title></head>
<body style="margin:0;padding:24px;font-family:system-ui,sans-serif;line-height:1.5;color:#1c2430;background:#fff">
<div style="max-width:560px;margin:0 auto">
<h1 style="font-size:22px">It works.</h1>
<p>Postroad sent you this test email on {day} at {time} UTC. If you can read it, mail from your account arrives.</p>
<p><strong>Next steps:</strong></p>
<ul>
<li>The message's page shows every delivery attempt: the server, its reply and the time it took.</li>
<li>Set up a webhook to notify your application of delivery results.</li>
<li>Create an API key or an SMTP credential, and send from your application.</li>
</ul>
<p style="color:#5b6675">You do not need to reply to this email.</p>
</div>
</body>
</html>
"""


async def send(
    ctx: context.Context, who: callers.Caller, *, sender: str, to: str, request_id: str
) -> transaction.Accepted:
    """Send the test message, under the same rules as any other message."""
    return await _send(ctx, who, _message(sender=sender, to=to, now=ctx.clock()), request_id=request_id)


async def send_rendered(
    ctx: context.Context, who: callers.Caller, content: rendering.Rendered, *, sender: str, to: str, request_id: str
) -> transaction.Accepted:
    request = send_request.SendRequest(
        sender=sender, to=to, subject=content.subject, text=content.text, html=content.html
    )
    return await _send(ctx, who, request, request_id=request_id)


async def default_sender(ctx: context.Context, account_id: str, allowed: Sequence[str] = ()) -> str | None:
    """A sender address at the first of the allowed domains that can send; without any, at the account's first."""
    return next(iter(await senders(ctx, account_id, allowed, limit=1)), None)


async def senders(ctx: context.Context, account_id: str, allowed: Sequence[str] = (), *, limit: int) -> list[str]:
    """Sender addresses, one for each allowed domain that can send; without allowed ones, for each verified domain.

    Where verification is not required, an account without a verified domain sends from all of them.
    """
    names = allowed
    if not names:
        known = await domains.of_account(ctx, account_id, limit=MAX_DOMAINS)
        verified = [domain for domain in known if domain.verified_at is not None]
        names = [domain.name for domain in verified or known]
    found: list[str] = []
    for name in names:
        if len(found) < limit:
            with contextlib.suppress(errors.Forbidden):
                found.append(f"{SENDER}@{(await send_limits.sending_domain(ctx, account_id, name)).name}")
    return found


async def _send(
    ctx: context.Context, who: callers.Caller, request: send_request.SendRequest, *, request_id: str
) -> transaction.Accepted:
    # No idempotency key: two requests mean two messages.
    return await submit.submit(ctx, who, request, request_id=request_id, source=statuses.Source.TEST, key=None)


def _message(*, sender: str, to: str, now: int) -> send_request.SendRequest:
    day, _, time = times.to_wire(now).partition("T")
    words = {"subject": SUBJECT, "day": day, "time": time[:5]}
    return send_request.SendRequest(
        sender=sender, to=to, subject=SUBJECT, text=TEXT.format(**words), html=HTML.format(**words)
    )
