"""Where a peer relays the mail that it has accepted."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Relay:
    """A port of loopback, and how many connections to it at once, where a server can be told."""

    next_hop_port: int
    concurrency: int = 20
