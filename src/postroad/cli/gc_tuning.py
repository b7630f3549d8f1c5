"""What a process that runs for months asks of the interpreter: fewer looks at what will never be garbage."""

import gc
from typing import Final

# By default the collector starts at every 700 new objects. Without it, a send was measured to cost some 3 % less CPU.
GC_THRESHOLD: Final = 20_000


def tune_gc() -> None:
    """Leave everything that was imported out of garbage collection, and collect less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, *gc.get_threshold()[1:])
