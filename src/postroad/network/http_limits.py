"""The limits of an HTTP listener, each with the reason for its value.

The parser (llhttp) bounds nothing, so everything that a client can make long, many or slow has a limit here. Times are
compared once a second by the listener's sweep.
"""

import msgspec


class Limits(msgspec.Struct, frozen=True):
    """The bounds of a listener and of each of its connections."""

    connections: int = 4096
    # An IPv6 network counts as one address. An eighth: an office behind one address has fewer.
    connections_per_address: int = 512
    # The common size of proxies in front of us; a token, a cookie and tracing fields fit many times. Without the URL.
    head_bytes: int = 64 * 1024
    header_fields: int = 100
    # Far more than any URL of ours has: what a client takes for an id is looked up, and is unknown. The parser counts
    # the bytes of a URL with 16 bits.
    url_bytes: int = 64 * 1024 - 1
    # Round trips over the slowest network; the head has its own time after it.
    handshake_seconds: float = 10
    head_seconds: float = 10
    # 32 MiB in two minutes: 2.3 Mbit/s.
    body_seconds: float = 120
    # A client that streams 32 MiB in pieces of 512 bytes is still served.
    body_chunks: int = 65_536
    # What chunks may cost beside their content: sizes, extensions, trailers. Twice what the chunks above need.
    framing_bytes: int = 1024 * 1024
    # What is held of a body that the application has not asked for yet, beside one read of the socket.
    unread_bytes: int = 64 * 1024
    # Longer than the 60 s after which load balancers usually close an idle connection.
    idle_seconds: float = 75
    # A caller that is refused while it sends should be able to finish sending and read why.
    drain_bytes: int = 64 * 1024 * 1024
    drain_seconds: float = 10
    # A caller that does not read its answer for this long is gone.
    write_seconds: float = 60
    pipelined_requests: int = 16
