"""DNS answers, before and after they are parsed.

Holds: nothing is raised; what is not refused has at most 16 KiB, and dnspython parses it or refuses it as it should.
"""

import contextlib
from typing import Final

import dns.exception
import dns.message

from postroad.protocol.dns import answer_limits
from tests.fuzz import target


def check(data: bytes) -> None:
    why = answer_limits.why_refused(data)
    if why is not None:
        assert target.is_sayable(why)
        return
    assert len(data) <= 16_384
    with contextlib.suppress(dns.exception.DNSException):
        dns.message.from_wire(data)


def _answer(*records: str, question: str = "example.com. IN MX") -> bytes:
    lines = ["id 1", "opcode QUERY", "flags QR RD RA", ";QUESTION", question, ";ANSWER", *records]
    return dns.message.from_text("\n".join(lines)).to_wire()


TARGET: Final = target.Target(
    name="dns_answer",
    open=target.plain(check),
    watches=("protocol/dns/answer_limits.py",),
    seeds=(
        _answer("example.com. 60 IN MX 10 mx.example.com.", "example.com. 60 IN MX 20 mx2.example.net."),
        _answer("mx.example.com. 60 IN A 192.0.2.1", question="mx.example.com. IN A"),
        _answer('_mta-sts.example.com. 60 IN TXT "v=STSv1;" "id=1"', question="_mta-sts.example.com. IN TXT"),
        _answer("a.example. 60 IN CNAME b.example.", "b.example. 60 IN AAAA ::1", question="a.example. IN AAAA"),
        # A name that points to itself, and one without an end.
        bytes.fromhex("000181800001000100000000c00c00010001c00c00010001000000000000"),
        bytes.fromhex("00018180000100000000000003777777"),
    ),
    # At most 1,500 parts are counted, however long the input is.
    steps=(20_000, 10),
)
