"""A name server on loopback, over UDP, that knows what it is given: where the mail of the benchmark's domains goes.

It answers in a thread of the benchmark. The service asks once for each name; a peer that remembers nothing asks for
each message, so an answer that was given once is kept, and only the number of the question changes (RFC 1035 section
4.1.1).
"""

import contextlib
import socket
import threading
import typing

import dns.message
import dns.rdatatype
import dns.rrset

ADDRESS = "127.0.0.1"
# Longer than any round.
SECONDS = 3600
MAX_BYTES = 4096
# How often the thread looks whether it is to end.
POLL_SECONDS = 0.2

STANDARD_PORT = 53
ID_BYTES = 2

# Records by name and type, such as {("example.org", "MX"): "10 mx.example.org."}; None is never answered.
Records = typing.Mapping[tuple[str, str], str | None]


@contextlib.contextmanager
def running(records: Records, *, address: str = ADDRESS, port: int = 0) -> typing.Iterator[str]:
    """A server for the time of the block; gives its address and port, as `delivery.resolvers` wants them.

    Without a `port` it takes a free one.
    """
    stopping = threading.Event()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind((address, port))
        listener.settimeout(POLL_SECONDS)
        server = threading.Thread(target=_serve, args=(listener, records, stopping))
        server.start()
        try:
            yield f"{address}:{listener.getsockname()[1]}"
        finally:
            stopping.set()
            server.join()


def _serve(listener: socket.socket, records: Records, stopping: threading.Event) -> None:
    given: dict[bytes, bytes | None] = {}
    while not stopping.is_set():
        with contextlib.suppress(TimeoutError):
            wire, client = listener.recvfrom(MAX_BYTES)
            number, question = wire[:ID_BYTES], wire[ID_BYTES:]
            if question not in given:
                given[question] = answer(wire, records)
            if (known := given[question]) is not None:
                listener.sendto(number + known[ID_BYTES:], client)


def answer(wire: bytes, records: Records) -> bytes | None:
    """What is known; of everything else, that there is nothing of this type. None when nobody is to hear anything."""
    query = dns.message.from_wire(wire)
    response = dns.message.make_response(query, recursion_available=True)
    question = query.question[0]
    kind = dns.rdatatype.to_text(question.rdtype)
    asked = (question.name.to_text(omit_final_dot=True).lower(), kind)
    known = records.get(asked)
    if known is None and asked in records:
        return None
    if known is not None:
        response.answer.append(dns.rrset.from_text(question.name, SECONDS, "IN", kind, known))
    else:
        start = f"ns.example. root.example. 1 3600 3600 3600 {SECONDS}"
        response.authority.append(dns.rrset.from_text(".", SECONDS, "IN", "SOA", start))
    return response.to_wire()
