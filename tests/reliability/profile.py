"""How far searches go: `TEST_SCALE=20` tries at least twenty times the examples, seeds and crash points of `make test`.

`make test` has a scale of one, and tries the same every time; `make test-all` has ten. Searches are bounded by
examples and never by time, so that a slow machine tries the same as a quick one. `TEST_SHRINK=1` searches for the
shortest sequence that fails, which may take minutes: run it with `-o faulthandler_timeout=0`. `TEST_MINUTES=10` lets
two customers work side by side for that long, as `make chaos` does.
"""

import os
from typing import Final

SCALE: Final = max(1, int(os.environ.get("TEST_SCALE", "1")))
IS_LONG: Final = SCALE > 1
MINUTES: Final = float(os.environ.get("TEST_MINUTES", "0"))
SHRINK: Final = os.environ.get("TEST_SHRINK") == "1"
# Each repeats itself; another one does something else.
SEEDS: Final = tuple(range(1, SCALE + 1))


def shares() -> tuple[float, ...]:
    """Parts of a whole, from nothing to all of it: how much of a commit was written when the process died."""
    count = 3 * min(SCALE, 10) if IS_LONG else 2
    return tuple(number / count for number in range(count + 1))
