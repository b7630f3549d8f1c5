"""A name server on loopback, over UDP, that knows what it is given: where the mail of the benchmark's domains goes.

It answers in a thread of the benchmark, because it is asked once for each name: the service remembers its answers.
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

# Records by name and type, such as {("example.org", "MX"): "10 mx.example.org."}.
Records = typing.Mapping[tuple[str, str], str]


@contextlib.contextmanager
def running(records: Records) -> typing.Iterator[str]:
    """A server for the time of the block; gives its address and port, as `delivery.resolvers` wants them."""
    stopping = threading.Event()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind((ADDRESS, 0))
        listener.settimeout(POLL_SECONDS)
        server = threading.Thread(target=_serve, args=(listener, records, stopping))
        server.start()
        try:
            yield f"{ADDRESS}:{listener.getsockname()[1]}"
        finally:
            stopping.set()
            server.join()


def _serve(listener: socket.socket, records: Records, stopping: threading.Event) -> None:
    while not stopping.is_set():
        with contextlib.suppress(TimeoutError):
            question, client = listener.recvfrom(MAX_BYTES)
            listener.sendto(answer(question, records), client)


def answer(wire: bytes, records: Records) -> bytes:
    """What is known; of everything else, that there is nothing of this type."""
    query = dns.message.from_wire(wire)
    response = dns.message.make_response(query, recursion_available=True)
    question = query.question[0]
    kind = dns.rdatatype.to_text(question.rdtype)
    known = records.get((question.name.to_text(omit_final_dot=True).lower(), kind))
    if known is not None:
        response.answer.append(dns.rrset.from_text(question.name, SECONDS, "IN", kind, known))
    else:
        start = f"ns.example. root.example. 1 3600 3600 3600 {SECONDS}"
        response.authority.append(dns.rrset.from_text(".", SECONDS, "IN", "SOA", start))
    return response.to_wire()
