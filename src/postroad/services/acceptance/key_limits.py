"""What an API key with limits may send: checked before and in the accepting transaction.

Sender domain and template are checked before it. Recipients a day and the credit budget are checked in it, under the
account's lock, so they are exact on any number of hosts.
"""

import msgspec

from postroad import errors
from postroad.model import key_limits
from postroad.services.acceptance import daily_limits, refusals, validation
from postroad.storage import messages


def check_content(limits: key_limits.Limits, checked: validation.CheckedMessage) -> None:
    """Refuse a sender or a content that the key may not send."""
    if limits.domains and checked.sender.domain not in limits.domains:
        raise errors.Forbidden(
            f"from: this API key may not send from {checked.sender.domain}, only from {', '.join(limits.domains)}"
        )
    template = checked.template if isinstance(checked, validation.CheckedSend) else None
    if limits.templates and template not in limits.templates:
        raise errors.Forbidden(f"template: this API key may only send the templates {', '.join(limits.templates)}")


def refusal(budget: key_limits.Budget | None, message: messages.NewMessage) -> errors.PostroadError | None:
    """Why a message exceeds what is left for its key; None when it does not."""
    if budget is None:
        return errors.Unauthorized("Authorization: the API key no longer exists")
    usage = key_limits.on_day(budget.usage, now=message.created_at)
    over = daily_limits.refusal(
        "this API key", message, used=usage.recipients, limit=budget.recipients_per_day, day=usage.day
    )
    if over is not None:
        return over
    if budget.credit_budget is not None and usage.credits + message.credits_reserved > budget.credit_budget:
        return errors.InsufficientCredits(
            f"the message needs {refusals.credits_text(message.credits_reserved)}, but this API key has used "
            f"{usage.credits} of its budget of {budget.credit_budget}; raise the budget, or use another key"
        )
    return None


def count(budget: key_limits.Budget, message: messages.NewMessage) -> key_limits.Budget:
    """What is left for the key after an accepted message."""
    usage = key_limits.on_day(budget.usage, now=message.created_at)
    used = key_limits.use(usage, recipients=message.recipient_count, credits=message.credits_reserved)
    return msgspec.structs.replace(budget, usage=used)
