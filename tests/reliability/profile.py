"""How long to look for trouble, told by the environment; without it every run does the same in less than a minute.

`RELIABILITY_SCALE=20` looks twenty times as long, each time elsewhere. `RELIABILITY_SHRINK=1` searches for the shortest
story of a failure, which may take minutes: run it with `-o faulthandler_timeout=0`. `RELIABILITY_MINUTES=10` lets two
customers live side by side for that long, as `make chaos` does.
"""

import os
from typing import Final

SCALE: Final = max(1, int(os.environ.get("RELIABILITY_SCALE", "1")))
MINUTES: Final = float(os.environ.get("RELIABILITY_MINUTES", "0"))
SHRINK: Final = os.environ.get("RELIABILITY_SHRINK") == "1"
# Each repeats itself; another one does something else.
SEEDS: Final = tuple(range(1, 2 * SCALE + 1))
