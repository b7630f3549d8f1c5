"""Two checkouts of the service, and the same bytes to both: what changes inside must not change a response.

    python -m tests.differential ../other --seed 7 --requests 4000

Run it before and after a change of order or speed on the path of a message, with a checkout of the commit before as the
other one. `services` starts both, `generator` makes the requests from a seed, `exchange` sends them, and `comparison`
replaces what differs between two runs of one commit.
"""
