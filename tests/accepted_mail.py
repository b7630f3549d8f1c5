"""Mail for tests: an account that may send, and messages accepted from it by the one way in."""

from postroad import context
from postroad.mail.accept import submit
from postroad.model.mail import send_request, statuses
from postroad.model.people import callers
from postroad.services.accounts import credits
from postroad.services.domains import domain_registry as domains

DOMAIN = "example.com"


def caller_of(account_id: str, *, credential_id: str | None = None, is_test: bool = False) -> callers.Caller:
    """Somebody who may do everything in the account, or the same with a test key."""
    return callers.Caller(account_id, credential_id, callers.Scheme.TOKEN, callers.EVERYTHING, is_test=is_test)


async def allow_sending(ctx: context.Context, account_id: str, *, domain: str = DOMAIN, amount: int = 1000) -> None:
    """Give the account a domain and credits."""
    await domains.add(ctx, account_id, domain, verified=True)
    await credits.add(ctx, account_id, amount, None)


async def accept(
    ctx: context.Context,
    account_id: str,
    *,
    source: statuses.Source = statuses.Source.API,
    key: str | None = None,
    is_test: bool = False,
    **fields: object,
) -> str:
    """Accept a message and return its id; `fields` replace those of a plain one."""
    request: dict[str, object] = {
        "sender": f"shop@{DOMAIN}",
        "to": ("ada@example.net",),
        "subject": "Your order",
        "text": "It is on its way.",
    }
    request.update(fields)
    sent = send_request.SendRequest(**request)  # type: ignore[arg-type]
    request_id = "req_" + "0" * 28
    who = caller_of(account_id, is_test=is_test)
    accepted = await submit.submit(ctx, who, sent, request_id=request_id, source=source, key=key)
    return accepted.message_id
