"""Questions and answers of DNS: what another implementation writes is read as it reads it; the rest is refused."""

from typing import Any, Final

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import hypothesis
import pytest
from hypothesis import strategies

from postroad.protocol.dns import messages

NUMBER = b"\x12\x34"
KINDS: Final[dict[str, messages.RecordType[Any]]] = {
    "A": messages.A,
    "AAAA": messages.AAAA,
    "MX": messages.MX,
    "TXT": messages.TXT,
    "CNAME": messages.CNAME,
    "PTR": messages.PTR,
    "TLSA": messages.TLSA,
}
START = "ns.example. root.example. 1 3600 3600 3600 60"


def asked(name: str, kind: str) -> tuple[bytes, bytes]:
    """A question, and the message with it."""
    question = messages.question_of(name, KINDS[kind].number)
    assert question is not None
    return question, messages.query(question, query_id=NUMBER, udp_bytes=1232)


def response(name: str, kind: str, *records: str, authority: str = "", code: str = "NOERROR") -> dns.message.Message:
    """What a server replies: records as `owner ttl type data`."""
    made = dns.message.make_response(dns.message.from_wire(asked(name, kind)[1]))
    made.set_rcode(dns.rcode.from_text(code))
    for line in records:
        owner, ttl, sort, data = line.split(" ", 3)
        made.answer.append(dns.rrset.from_text(owner, int(ttl), "IN", sort, data))
    if authority:
        owner, ttl, data = authority.split(" ", 2)
        made.authority.append(dns.rrset.from_text(owner, int(ttl), "IN", "SOA", data))
    return made


def read(name: str, kind: str, wire: bytes) -> messages.Answer[object]:
    """The answer to a question."""
    return messages.read(wire, asked(name, kind)[0], KINDS[kind], max_records=3)


def test_another_implementation_reads_our_question() -> None:
    seen = dns.message.from_wire(asked("_25._tcp.MX.example.org", "TLSA")[1])
    assert str(seen.question[0]) == "_25._tcp.MX.example.org. IN TLSA"
    assert (seen.id, seen.edns, seen.payload) == (0x1234, 0, 1232)
    assert seen.flags == dns.flags.RD | dns.flags.AD


@pytest.mark.parametrize("name", ["", ".", "example.org", "example.org.", "a" * 63 + ".example"])
def test_a_name_is_absolute_with_its_final_dot_or_without(name: str) -> None:
    written = messages.question_of(name, 1)
    assert written is not None
    labels = [label for label in name.split(".") if label]
    assert written == b"".join(bytes([len(label)]) + label.encode() for label in labels) + b"\0\0\x01\0\x01"


@pytest.mark.parametrize("name", ["a..b", ".a", "a" * 64, ".".join(["abcdefg"] * 32), "münchen.example", "a.."])
def test_what_is_no_name_cannot_be_asked(name: str) -> None:
    assert messages.question_of(name, 1) is None


@pytest.mark.parametrize(
    "kind, data, record",
    [
        ("A", "192.0.2.1", "192.0.2.1"),
        ("AAAA", "2001:db8::1", "2001:db8::1"),
        ("MX", "10 MX1.Example.org.", (10, "mx1.example.org")),
        ("MX", "0 .", (0, "")),
        ("MX", r"5 a\.b\@c\000d.example.", (5, r"a\.b\@c\000d.example")),
        ("TXT", '"v=spf1 " "-all"', "v=spf1 -all"),
        ("CNAME", "Other.example.", "other.example"),
        ("PTR", "host.example.", "host.example"),
        ("TLSA", "3 1 9 abcd", (3, 1, 9, b"\xab\xcd")),
    ],
)
def test_each_type_is_read(kind: str, data: str, record: object) -> None:
    wire = response("Example.org", kind, f"example.org. 300 {kind} {data}").to_wire()
    assert read("example.ORG", kind, wire) == messages.Answer(0, (record,), 300, is_authentic=False)


def test_the_shortest_life_counts_each_record_once_and_no_more_than_asked_for() -> None:
    lines = [f"example.org. {ttl} A 192.0.2.{number}" for number, ttl in [(1, 50), (2, 20), (1, 90), (3, 40), (4, 60)]]
    wire = response("example.org", "A", *lines).to_wire()
    assert read("example.org", "A", wire) == messages.Answer(
        0, ("192.0.2.1", "192.0.2.2", "192.0.2.3"), 20, is_authentic=False
    )


def test_aliases_are_followed_in_whatever_order_they_come() -> None:
    lines = ["b.example. 9 CNAME c.example.", "c.example. 90 A 192.0.2.1", "a.example. 70 CNAME b.example."]
    found = read("a.example", "A", response("a.example", "A", *lines, "d.example. 1 A 192.0.2.9").to_wire())
    assert (found.records, found.ttl) == (("192.0.2.1",), 9)


@pytest.mark.parametrize("count, is_read", [(15, True), (16, False)])
def test_a_chain_of_aliases_has_a_bound(count: int, *, is_read: bool) -> None:
    lines = [f"n{number}.example. 60 CNAME n{number + 1}.example." for number in range(count)]
    wire = response("n0.example", "A", *lines, f"n{count}.example. 60 A 192.0.2.1").to_wire()
    if is_read:
        assert read("n0.example", "A", wire).records == ("192.0.2.1",)
    else:
        with pytest.raises(messages.BadAnswer):
            read("n0.example", "A", wire)


@pytest.mark.parametrize(
    "authority, ttl",
    [
        (f"example. 90 {START}", 60),
        (f"example. 30 {START}", 30),
        (f". 90 {START}", 60),
        (f"other. 90 {START}", 2**31 - 1),
        ("", 2**31 - 1),
    ],
)
@pytest.mark.parametrize("code, number", [("NOERROR", 0), ("NXDOMAIN", 3)])
def test_the_zone_says_how_long_there_is_nothing(*, authority: str, ttl: int, code: str, number: int) -> None:
    wire = response("a.example", "MX", authority=authority, code=code).to_wire()
    assert read("a.example", "MX", wire) == messages.Answer(number, (), ttl, is_authentic=False)


def test_authenticity_and_truncation_are_read() -> None:
    made = response("example.org", "A", "example.org. 60 A 192.0.2.1")
    made.flags |= dns.flags.AD
    assert read("example.org", "A", made.to_wire()).is_authentic
    made.flags |= dns.flags.TC
    assert read("example.org", "A", made.to_wire()).is_truncated


def test_a_code_may_be_longer_and_a_refusal_may_be_without_the_question() -> None:
    made = response("example.org", "A")
    made.set_rcode(dns.rcode.BADVERS)
    assert read("example.org", "A", made.to_wire()).code == 16
    assert read("example.org", "A", NUMBER + b"\x81\x85" + bytes(8)).code == 5


@pytest.mark.parametrize(
    "wire",
    [
        b"",
        asked("example.org", "A")[1],
        response("example.com", "A", "example.com. 60 A 192.0.2.1").to_wire(),
        response("example.org", "MX", "example.org. 60 MX 1 mx.example.").to_wire(),
        response("example.org", "A", "example.org. 60 A 192.0.2.1").to_wire() + b"\0",
        NUMBER + b"\x81\x80" + bytes(8),
    ],
    ids=["nothing", "a question", "another name", "another type", "more than one message", "no question"],
)
def test_what_does_not_answer_the_question_is_no_answer(wire: bytes) -> None:
    with pytest.raises(messages.BadAnswer):
        read("example.org", "A", wire)


@pytest.mark.parametrize("kind, data", [("A", bytes(3)), ("AAAA", bytes(15)), ("TXT", b"\x05ab"), ("TLSA", bytes(2))])
def test_data_that_is_too_short_is_no_answer(kind: str, data: bytes) -> None:
    wire = bytearray(response("example.org", kind).to_wire())
    wire[7] = 1
    end = len(wire) - 11  # before the options
    record = b"\xc0\x0c" + KINDS[kind].number.to_bytes(2) + b"\0\1" + bytes(4) + len(data).to_bytes(2) + data
    with pytest.raises(messages.BadAnswer):
        read("example.org", kind, bytes(wire[:end]) + record + bytes(wire[end:]))


WHOLE = [
    response("a.example", "MX", "a.example. 60 CNAME b.example.", "b.example. 60 MX 10 mx.b.example.").to_wire(),
    response("a.example", "AAAA", authority=f"example. 90 {START}").to_wire(),
    response("a.example", "TXT", 'a.example. 60 TXT "one" "two"').to_wire(),
]


@hypothesis.given(
    wire=strategies.sampled_from(WHOLE),
    changes=strategies.lists(strategies.tuples(strategies.integers(0, 120), strategies.integers(0, 255)), max_size=4),
    cut=strategies.integers(0, 120),
    kind=strategies.sampled_from(sorted(KINDS)),
)
def test_nothing_else_is_raised(*, wire: bytes, changes: list[tuple[int, int]], cut: int, kind: str) -> None:
    mutated = bytearray(wire)
    for place, octet in changes:
        mutated[place % len(mutated)] = octet
    try:
        read("a.example", kind, bytes(mutated[: len(mutated) - cut % 8]))
    except messages.BadAnswer:
        return
