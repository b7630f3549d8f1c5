"""Sends that were refused after the rate check, before the accepting transaction: they count towards the rate too.

What a process remembers of a rate is only a first filter, and each frontend has its own. So a refusal is an entry of
the group commit like a submission: it takes from the stored bucket of its account, which is one for all processes.
"""

from collections.abc import Mapping, Sequence

import msgspec

from postroad import errors
from postroad.model import throttle
from postroad.services.acceptance import rate_limit, transaction
from postroad.storage import accounts, rates, store


class RefusedSend(msgspec.Struct, frozen=True, array_like=True):
    """A send, or `count` items of a batch, that count and store nothing else."""

    account_id: str
    created_at: int
    count: int = 1


async def count(
    tx: store.Transaction,
    refused: Sequence[RefusedSend],
    *,
    locked: Mapping[str, accounts.Account],
    policies: transaction.Policies,
) -> list[transaction.Accepted | errors.PostroadError]:
    """Count them, in order; those over the limit get that error. The others get the state of their bucket.

    Several items take what is left; they are over the limit if nothing is.
    """
    before = await rates.find(tx, {send.account_id for send in refused})
    buckets = dict(before)
    answers: list[transaction.Accepted | errors.PostroadError] = []
    for send in refused:
        policy = throttle.at_rate(
            policies.rate, locked[send.account_id].request_rate if send.account_id in locked else None
        )
        clock = policies.clock()
        refusal = rate_limit.take_shared(buckets, send.account_id, policy, now=send.created_at, clock=clock)
        for _ in range(1, send.count):
            rate_limit.take_shared(buckets, send.account_id, policy, now=send.created_at, clock=clock)
        full_at = throttle.full_at(buckets[send.account_id], now=send.created_at)
        answers.append(refusal or transaction.Accepted("", "", b"", replayed=False, full_at=full_at))
    await rate_limit.write(tx, locked, before=before, after=buckets)
    return answers
