"""The benchmark's name server answers what it knows, says nothing where it is told to, and remembers its answers."""

import socket

import dns.message
import dns.query
import dns.rdatatype
import pytest

from benchmarks.peers import name_server

RECORDS = {("example.org", "MX"): "10 mx.example.org.", ("held.example.org", "MX"): None}


def ask(server: str, name: str, kind: str) -> dns.message.Message:
    address, _, port = server.rpartition(":")
    return dns.query.udp(dns.message.make_query(name, kind), address, port=int(port), timeout=60)


def test_an_answer_that_is_kept_fits_the_next_question() -> None:
    with name_server.running(RECORDS) as server:
        answers = [ask(server, "example.org", "MX") for _ in range(3)]
    assert [answer.answer[0].to_text() for answer in answers] == ["example.org. 3600 IN MX 10 mx.example.org."] * 3


def test_of_what_it_does_not_know_there_is_nothing() -> None:
    with name_server.running(RECORDS) as server:
        reply = ask(server, "example.org", "TXT")
    assert reply.answer == []
    assert reply.authority[0].rdtype == dns.rdatatype.SOA


def test_a_question_may_stay_without_an_answer() -> None:
    silent = dns.message.make_query("held.example.org", "MX").to_wire()
    assert name_server.answer(silent, RECORDS) is None
    with name_server.running(RECORDS) as server, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        address, _, port = server.rpartition(":")
        client.connect((address, int(port)))
        client.send(silent)
        assert ask(server, "example.org", "MX").answer  # it was read, and what comes after it is answered
        client.settimeout(0)
        with pytest.raises(BlockingIOError):
            client.recv(512)
