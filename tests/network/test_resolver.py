"""The resolver distinguishes existing, missing and unknown names, over UDP and TCP, and never raises."""

import asyncio
from pathlib import Path

import pytest

from postroad.model.delivery import tls_policy
from postroad.network.dns import name_servers, resolver
from tests import dns_server

DIGEST = "ab" * 32


def with_short_timeout(*servers: str) -> resolver.Resolver:
    return resolver.Resolver(servers, try_seconds=0.1, query_seconds=3.0)


async def test_mail_hosts_come_with_their_preferences_in_lower_case_and_without_a_dot() -> None:
    async with dns_server.running({"example.org": {"MX": ["20 MX2.Example.ORG.", "10 mx1.example.org."]}}) as server:
        answer = await resolver.Resolver([server.address]).mx("example.org")
    assert isinstance(answer, resolver.Answer)
    assert set(answer.records) == {resolver.Mx(20, "mx2.example.org"), resolver.Mx(10, "mx1.example.org")}
    assert answer.ttl == 300
    assert answer.exists


async def test_the_null_mx_is_an_empty_host() -> None:
    async with dns_server.running({"example.org": {"MX": ["0 ."]}}) as server:
        answer = await resolver.Resolver([server.address]).mx("example.org")
    assert isinstance(answer, resolver.Answer)
    assert answer.records == (resolver.Mx(0, ""),)


async def test_a_name_that_does_not_exist_is_not_a_name_without_records() -> None:
    async with dns_server.running({"example.org": {"A": ["192.0.2.1"]}}) as server:
        asking = resolver.Resolver([server.address])
        assert await asking.mx("example.org") == resolver.Answer((), ttl=60, exists=True)
        assert await asking.mx("missing.example") == resolver.Answer((), ttl=60, exists=False)


async def test_addresses_of_both_families_come_in_turn_and_in_their_order() -> None:
    zones: dns_server.Zones = {"mx.example": {"A": ["192.0.2.9", "192.0.2.1", "192.0.2.5"], "AAAA": ["2001:db8::9"]}}
    async with dns_server.running(zones) as server:
        answer = await resolver.Resolver([server.address]).addresses("mx.example")
    assert isinstance(answer, resolver.Answer)
    assert answer.records == ("192.0.2.9", "2001:db8::9", "192.0.2.1", "192.0.2.5")


async def test_one_family_is_enough_when_the_other_fails() -> None:
    async with dns_server.running({"mx.example": {"A": dns_server.Fault.SERVFAIL, "AAAA": ["2001:db8::1"]}}) as server:
        answer = await resolver.Resolver([server.address]).addresses("mx.example")
    assert isinstance(answer, resolver.Answer)
    assert answer.records == ("2001:db8::1",)


async def test_nothing_is_known_when_one_family_fails_and_the_other_is_empty() -> None:
    async with dns_server.running({"mx.example": {"A": dns_server.Fault.SERVFAIL}}) as server:
        assert await resolver.Resolver([server.address]).addresses("mx.example") == resolver.Failure("SERVFAIL")


async def test_addresses_of_a_missing_name_do_not_exist() -> None:
    async with dns_server.running({}) as server:
        answer = await resolver.Resolver([server.address]).addresses("mx.example")
    assert answer == resolver.Answer((), ttl=60, exists=False)


async def test_what_is_missing_is_believed_for_minutes_at_the_most() -> None:
    async with dns_server.running({}) as server:
        server.negative_ttl = 86_400
        answer = await resolver.Resolver([server.address]).mx("example.org")
    assert answer == resolver.Answer((), ttl=resolver.MAX_NEGATIVE_TTL_SECONDS, exists=False)


async def test_an_alias_is_followed_and_lends_the_shorter_lifetime() -> None:
    zones: dns_server.Zones = {"mx.example": {"CNAME": ["host.example."]}, "host.example": {"A": ["192.0.2.1"]}}
    async with dns_server.running(zones) as server:
        server.ttls["mx.example"] = 7
        answer = await resolver.Resolver([server.address]).addresses("mx.example")
    assert isinstance(answer, resolver.Answer)
    assert (answer.records, answer.ttl) == (("192.0.2.1",), 7)


async def test_an_alias_is_found_whatever_it_leads_to() -> None:
    async with dns_server.running({"a.example": {"CNAME": ["B.Example."]}, "c.example": {"TXT": ['"text"']}}) as server:
        asking = resolver.Resolver([server.address])
        found = [await asking.cname(name) for name in ("a.example", "c.example", "d.example")]
    assert [one.records for one in found if isinstance(one, resolver.Answer)] == [("b.example",), (), ()]


async def test_the_strings_of_a_text_are_joined() -> None:
    async with dns_server.running({"example.org": {"TXT": ['"v=STSv1; " "id=1;"']}}) as server:
        answer = await resolver.Resolver([server.address]).txt("example.org")
    assert isinstance(answer, resolver.Answer)
    assert answer.records == ("v=STSv1; id=1;",)


async def test_certificate_associations_are_values() -> None:
    async with dns_server.running({"_25._tcp.mx.example": {"TLSA": [f"3 1 1 {DIGEST}"]}}) as server:
        answer = await resolver.Resolver([server.address]).tlsa("_25._tcp.mx.example")
    assert isinstance(answer, resolver.Answer)
    assert answer.records == (tls_policy.Tlsa(3, 1, 1, bytes.fromhex(DIGEST)),)


async def test_authenticity_is_asked_for_and_passed_on() -> None:
    zones: dns_server.Zones = {"signed.example": {"MX": ["1 a.example."]}, "plain.example": {"MX": ["1 a.example."]}}
    async with dns_server.running(zones, secure={"signed.example"}) as server:
        asking = resolver.Resolver([server.address])
        signed, plain = await asking.mx("signed.example"), await asking.mx("plain.example")
        empty, missing = await asking.txt("signed.example"), await asking.txt("no.signed.example")
        assert all(server.asked_for_authenticity)
    answers = [signed, plain, empty, missing]
    assert [isinstance(answer, resolver.Answer) and answer.is_authentic for answer in answers] == [
        True,
        False,
        True,
        True,
    ]


@pytest.mark.parametrize("fault", [dns_server.Fault.SERVFAIL, dns_server.Fault.REFUSED])
async def test_a_refusal_of_the_server_is_a_failure_with_its_name(fault: dns_server.Fault) -> None:
    async with dns_server.running({"example.org": fault}) as server:
        assert await resolver.Resolver([server.address]).mx("example.org") == resolver.Failure(fault.value)


@pytest.mark.parametrize(
    "fault",
    [dns_server.Fault.SILENCE, dns_server.Fault.WRONG_ID, dns_server.Fault.GARBAGE],
    ids=lambda fault: fault.name,
)
async def test_a_server_that_does_not_answer_the_question_is_asked_again_and_then_times_out(
    fault: dns_server.Fault,
) -> None:
    async with dns_server.running({"example.org": fault}) as server:
        assert await with_short_timeout(server.address).mx("example.org") == resolver.Failure("no answer in time")
        assert server.count("example.org", "MX") > 1


async def test_an_answer_with_another_id_is_overheard() -> None:
    async with dns_server.running({"example.org": {"FORGED": [], "MX": ["1 mx.example."]}}) as server:
        answer = await resolver.Resolver([server.address]).mx("example.org")
    assert isinstance(answer, resolver.Answer)
    assert answer.records == (resolver.Mx(1, "mx.example"),)


async def test_a_long_answer_is_fetched_over_tcp_and_bounded() -> None:
    hosts = [f"{number} mx{number}.a-name-of-some-length.example." for number in range(130)]
    async with dns_server.running({"example.org": {"TC": [], "MX": hosts}}) as server:
        answer = await resolver.Resolver([server.address]).mx("example.org")
        assert server.transports == ["udp", "tcp"]
    assert isinstance(answer, resolver.Answer)
    assert len(answer.records) == 100


async def test_an_answer_that_is_too_much_to_parse_is_refused_and_not_asked_for_again() -> None:
    zones: dns_server.Zones = {
        "many.example": {"TC": [], "A": [f"192.0.{number // 256}.{number % 256}" for number in range(300)]},
        "large.example": {"TC": [], "TXT": [f'"{"x" * 250}{number:03}"' for number in range(70)]},
        # Each record repeats the first name by a pointer, so that all of them fit into a packet.
        "deep.example": {"MX": [f"{number} {'a.' * 120}example." for number in range(30)]},
    }
    async with dns_server.running(zones) as server:
        asking = resolver.Resolver([server.address])
        many, large = await asking.addresses("many.example"), await asking.txt("large.example")
        deep = await asking.mx("deep.example")
        asked = [server.count("many.example", "A"), server.count("large.example", "TXT")]
        assert server.transports[-1] == "udp"
        assert (*asked, server.count("deep.example", "MX")) == (2, 2, 1)
    assert many == resolver.Failure("the answer would take too long to parse")
    assert large == resolver.Failure("the answer has more than 16384 bytes")
    assert deep == resolver.Failure("the answer would take too long to parse")


async def test_a_server_whose_answer_is_refused_leaves_the_question_to_the_next() -> None:
    hosts = [f"{number} mx{number}.example." for number in range(300)]
    async with (
        dns_server.running({"example.org": {"TC": [], "MX": hosts}}) as hostile,
        dns_server.running({"example.org": {"MX": ["1 mx.example."]}}) as sound,
    ):
        answer = await resolver.Resolver([hostile.address, sound.address]).mx("example.org")
    assert isinstance(answer, resolver.Answer)
    assert answer.records == (resolver.Mx(1, "mx.example"),)


async def test_a_server_that_fails_leaves_the_question_to_the_next() -> None:
    async with (
        dns_server.running({"example.org": dns_server.Fault.SERVFAIL}) as broken,
        dns_server.running({"example.org": {"MX": ["1 mx.example."]}}) as sound,
    ):
        answer = await resolver.Resolver([broken.address, sound.address]).mx("example.org")
    assert isinstance(answer, resolver.Answer)
    assert answer.records == (resolver.Mx(1, "mx.example"),)


@pytest.mark.parametrize("name", ["a" * 64 + ".example", "a..example", ".".join(["abcdefg"] * 40), "münchen.example"])
async def test_a_name_that_cannot_be_asked_for_does_not_exist(name: str) -> None:
    async with dns_server.running({"*": {"MX": ["1 mx.example."]}}) as server:
        answer = await resolver.Resolver([server.address]).mx(name)
        assert server.questions == []
    assert isinstance(answer, resolver.Answer)
    assert not answer.exists


async def test_many_questions_wait_for_each_other() -> None:
    async with dns_server.running({"*": {"TXT": ['"x"']}}) as server:
        asking = resolver.Resolver([server.address], max_concurrent=3)
        with server.holding():
            tasks = [asyncio.create_task(asking.txt(f"{number}.example")) for number in range(10)]
            async with asyncio.timeout(30):
                while len(server.questions) < 3:
                    await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
            assert len(server.questions) == 3
        answers = await asyncio.gather(*tasks)
    assert all(isinstance(answer, resolver.Answer) and answer.records == ("x",) for answer in answers)


async def test_who_stops_waiting_leaves_nothing_behind() -> None:
    async with dns_server.running({"example.org": {"MX": ["1 mx.example."]}}) as server:
        asking = resolver.Resolver([server.address])
        with server.holding(), pytest.raises(TimeoutError):
            await asyncio.wait_for(asking.mx("example.org"), 0.05)
        assert isinstance(await asking.mx("example.org"), resolver.Answer)


def test_the_servers_of_the_system_are_those_of_its_configuration() -> None:
    lines = [
        "# nameserver 192.0.2.9",
        "search example.org",
        "nameserver 192.0.2.1",
        "nameserver fe80::1%eth0",
        "nameserver",
    ]
    assert name_servers.of_system(lines) == ([("192.0.2.1", 53), ("fe80::1%eth0", 53)], False)
    assert name_servers.of_system(["options edns0 rotate"]) == ([("127.0.0.1", 53)], True)


async def test_without_a_configuration_of_the_system_this_host_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(name_servers, "SYSTEM_SETTINGS", str(tmp_path / "missing"))
    assert resolver.Resolver()._name_servers.servers == (("127.0.0.1", 53),)
