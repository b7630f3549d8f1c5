"""Request rates: one token bucket for each SMTP credential, shared by everything that sends with it."""

import math
from typing import Final

from postroad import errors
from postroad.model import throttle, times

# Buckets that are full again tell nothing and are dropped when this many are kept.
MOST_BUCKETS: Final = 100_000


class Rates:
    """The buckets of this process."""

    def __init__(self, *, rate: int, burst: int) -> None:
        self.policy = throttle.Policy(rate=rate, burst=burst)
        self._full_at: dict[str, int] = {}

    def take(self, credential_id: str, *, now: int) -> throttle.Verdict:
        """Count one request; raises RateLimited when it is one too many."""
        verdict = throttle.take(self.policy, full_at=self._full_at.get(credential_id, 0), now=now)
        if len(self._full_at) >= MOST_BUCKETS:
            self._full_at = {name: full_at for name, full_at in self._full_at.items() if full_at > now}
        self._full_at[credential_id] = verdict.full_at
        if not verdict.allowed:
            msg = (
                f"more than {self.policy.rate} sends a second with this credential; "
                "wait as Retry-After says and repeat with the same key"
            )
            raise errors.RateLimited(msg, retry_after=max(1, math.ceil(verdict.wait / times.SECOND)))
        return verdict

    def headers(self, credential_id: str, *, now: int) -> tuple[tuple[str, str], ...]:
        """The `RateLimit` fields (draft-ietf-httpapi-ratelimit-headers) for the bucket as it is."""
        ahead = max(0, self._full_at.get(credential_id, 0) - now)
        remaining = (self.policy.window - ahead) // self.policy.interval
        window = math.ceil(self.policy.window / times.SECOND)
        return (
            ("RateLimit-Policy", f'"credential";q={self.policy.burst};w={window}'),
            ("RateLimit", f'"credential";r={remaining};t={math.ceil(ahead / times.SECOND)}'),
        )
