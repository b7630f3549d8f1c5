"""The rate of management requests: one token bucket per account, and one of half its size per user or API key.

So one program cannot use up what the account's other users need. Sending and reading mail have limits of their
own (`acceptance/rate_limit.py`). The buckets are in memory, so each process counts separately: what they protect is the
processor and the database of a host, and exactness over all processes is not worth a write per request.
"""

import math
from collections.abc import Callable
from typing import Final

from postroad import errors
from postroad.model import caller, throttle, times
from postroad.services.acceptance import rate_limit
from postroad.services.auth import authentication

USERS_PART: Final = 2


class ManagementRate:
    """The buckets of this process."""

    def __init__(self, policy: throttle.RateLimit, *, clock: Callable[[], int]) -> None:
        part = throttle.RateLimit(rate=math.ceil(policy.rate / USERS_PART), burst=math.ceil(policy.burst / USERS_PART))
        self._of_user = rate_limit.RateLimiter(part, refuse=_refusal)
        self._of_account = rate_limit.RateLimiter(policy, refuse=_refusal)
        self._clock = clock

    def require(
        self,
        who: caller.Caller,
        permission: caller.Permission,
        *,
        scope: caller.Scope | None = None,
        client_address: str = "",
    ) -> None:
        """Refuse a caller without this permission, and one that manages too fast."""
        authentication.require(who, permission, scope=scope, client_address=client_address)
        if permission not in caller.PASSWORD_PERMISSIONS:
            now = self._clock()
            self._of_user.take(who.user_id or (who.key.id if who.key else ""), now=now)
            self._of_account.take(who.account_id, now=now)


def _refusal(policy: throttle.RateLimit, decision: throttle.RateDecision) -> errors.RateLimited:
    seconds = max(1, math.ceil(decision.wait / times.SECOND))
    return errors.RateLimited(f"too many management requests: more than {policy.rate} per second", retry_after=seconds)
