"""Delays of responses, so that a flood of requests takes a share of the event loop and not all of it.

A refusal costs the service almost as much as a success, and a client that sends its next request as soon as it has an
answer gets thousands of them a second. So each party, an account or the network of a stranger, has a pace at which its
refusals are answered, and one for everything else that is not an accepted message (accepted messages have their own
rate limit). What comes faster is answered later, and a connection sends nothing more until it has its answer.

An account that is alone loses nothing: it is delayed only while another account is active as well.
"""

import time
from collections.abc import Callable
from typing import Final

# A few percent of the time of a process: refusals are cheap, a page takes a millisecond or two.
REFUSALS_PER_SECOND: Final = 50
SUCCESSES_PER_SECOND: Final = 100
# What is answered at once: a few pages with their files, or an office that begins its day.
BURST: Final = 200
# Clients often time out after ten seconds or more. Whoever has more requests in progress than fit into this time is
# answered faster again, but needs a connection for each.
MAX_SECONDS: Final = 2.0
# How long an account counts as active after a request.
ACTIVE_SECONDS: Final = 60.0
# Parties that are within their pace carry no information and are dropped when this many are kept.
MAX_PARTIES: Final = 10_000


class ResponseDelays:
    """The pace of each party, in this process."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # The account of the latest request.
        self._account_id: str | None = None
        self._shared_until = 0.0
        # When the next answer of a party is due at its pace, refused or not.
        self._due: dict[tuple[str, bool], float] = {}

    def note_account(self, account_id: str) -> None:
        """A request of this account."""
        if account_id == self._account_id:
            return
        if self._account_id is not None:
            self._shared_until = self._clock() + ACTIVE_SECONDS
        self._account_id = account_id

    def seconds(self, party: str, *, is_account: bool, is_refused: bool) -> float:
        """In how many seconds to answer a request that is not an accepted message."""
        now = self._clock()
        if is_account and now >= self._shared_until:
            return 0.0
        if len(self._due) >= MAX_PARTIES:
            self._due = {pace: due for pace, due in self._due.items() if due > now}
        rate = REFUSALS_PER_SECOND if is_refused else SUCCESSES_PER_SECOND
        due = max(self._due.get((party, is_refused), now), now)
        delay = due - now - BURST / rate
        if delay < MAX_SECONDS:
            self._due[party, is_refused] = due + 1 / rate
        return min(max(delay, 0.0), MAX_SECONDS)
