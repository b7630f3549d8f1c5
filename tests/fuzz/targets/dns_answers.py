"""DNS answers, before and after they are parsed.

Holds: nothing is raised; what is not refused has at most 16 KiB, and is read or refused; what dnspython reads too has
the same addresses.
"""

import contextlib
from collections.abc import Sequence
from typing import Any, Final

import dns.exception
import dns.message

from postroad.protocol.dns import answer_limits, messages
from tests.fuzz import target

KINDS: Final[tuple[messages.RecordType[Any], ...]] = (
    messages.A,
    messages.AAAA,
    messages.CNAME,
    messages.MX,
    messages.TLSA,
    messages.TXT,
)


def check(data: bytes) -> None:
    why = answer_limits.why_refused(data)
    if why is not None:
        assert target.is_sayable(why)
        return
    assert len(data) <= 16_384
    for kind in KINDS:
        question = _question(data) + kind.number.to_bytes(2) + b"\0\1"
        with contextlib.suppress(messages.BadAnswer):
            read = messages.read(data, question, kind, max_records=100)
            assert len(read.records) <= 100
            if kind is messages.A and read.records and not read.code:
                _compare(data, read.records)


def _question(data: bytes) -> bytes:
    """The name of the question, if it has one."""
    end = data.find(b"\0", 12)
    return data[12 : end + 1] if end >= 0 else b"\0"


def _compare(data: bytes, records: Sequence[object]) -> None:
    with contextlib.suppress(dns.exception.DNSException):
        answer = dns.message.from_wire(data)
        assert isinstance(answer, dns.message.QueryMessage)
        found = answer.resolve_chaining().answer
        assert found is None or [record.address for record in found][:100] == list(records)


def _answer(*records: str, question: str = "example.com. IN MX") -> bytes:
    lines = ["id 1", "opcode QUERY", "flags QR RD RA", ";QUESTION", question, ";ANSWER", *records]
    return dns.message.from_text("\n".join(lines)).to_wire()


TARGET: Final = target.Target(
    name="dns_answer",
    open=target.plain(check),
    watches=("protocol/dns/answer_limits.py", "protocol/dns/messages.py"),
    seeds=(
        _answer("example.com. 60 IN MX 10 mx.example.com.", "example.com. 60 IN MX 20 mx2.example.net."),
        _answer("mx.example.com. 60 IN A 192.0.2.1", question="mx.example.com. IN A"),
        _answer('_mta-sts.example.com. 60 IN TXT "v=STSv1;" "id=1"', question="_mta-sts.example.com. IN TXT"),
        _answer("a.example. 60 IN CNAME b.example.", "b.example. 60 IN AAAA ::1", question="a.example. IN AAAA"),
        # A name that points to itself, and one without an end.
        bytes.fromhex("000181800001000100000000c00c00010001c00c00010001000000000000"),
        bytes.fromhex("00018180000100000000000003777777"),
    ),
    # At most 1,500 parts are counted, however long the input is, and read for each type.
    steps=(100_000, 60),
)
