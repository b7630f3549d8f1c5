"""Recipients per UTC day: of an account, as an operator set it, and of an API key.

Both are checked in the accepting transaction, under the account's lock, so they are exact on any number of hosts. What
an account has sent today is what its hourly counts say, which the same transaction writes; only accounts with a limit
read them. Test mail does not count.
"""

import math
from collections.abc import Iterable, Mapping

from postroad import errors
from postroad.model import times
from postroad.storage import accounts, hourly_counts, messages, store


async def recipients_today(tx: store.Transaction, locked: Iterable[accounts.Account], *, now: int) -> dict[str, int]:
    """What the accounts with a limit have sent on the day of a time."""
    hour = hourly_counts.hour_of(times.day_of(now) * times.DAY)
    found = {}
    for account in locked:
        if account.recipients_per_day is not None:
            _, recipients, *_ = await hourly_counts.since(tx, account.id, from_hour=hour)
            found[account.id] = recipients or 0
    return found


def of_account(
    message: messages.NewMessage, locked: Mapping[str, accounts.Account], today: Mapping[str, int]
) -> errors.PostroadError | None:
    """Why a message exceeds the limit of its account; None when it does not, or there is none."""
    used = None if message.is_test else today.get(message.account_id)
    if used is None:
        return None
    return refusal("this account", message, used=used, limit=locked[message.account_id].recipients_per_day)


def refusal(
    owner: str, message: messages.NewMessage, *, used: int, limit: int | None, day: int | None = None
) -> errors.PostroadError | None:
    """Why a message exceeds the daily limit of `owner`; None when it does not."""
    count = message.recipient_count
    if limit is None or used + count <= limit:
        return None
    if count > limit:
        return errors.Forbidden(
            f"the message has {count} recipients, but {owner} may send to {limit} per day; send to fewer"
        )
    next_day = (times.day_of(message.created_at) if day is None else day) + 1
    seconds = math.ceil((next_day * times.DAY - message.created_at) / times.SECOND)
    return errors.RateLimited(
        f"{owner} has sent to {used} of its {limit} recipients per day, and this message has {count}; the next day "
        "begins at 00:00 UTC",
        retry_after=max(1, seconds),
    )
