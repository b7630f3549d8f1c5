"""Imported last into the process that commands are forked from: what is there by then stays, and is no garbage.

So a collection in a forked process need not look at it, nor copy the pages that it stands on.
"""

import gc

gc.collect()
gc.freeze()
