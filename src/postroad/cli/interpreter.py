"""What a process that runs for months asks of the interpreter: fewer looks at what will never be garbage."""

import gc
from typing import Final

# By default the collector starts at every 700 new objects. Without it, a send was measured to cost some 3 % less CPU.
NEW_OBJECTS: Final = 20_000


def settle() -> None:
    """Leave everything that was imported out of garbage collection, and collect less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, *gc.get_threshold()[1:])
