"""Source addresses, port 25, listeners and the return path: one broken set-up each, and what is said about it."""

from pathlib import Path

import pytest

from postroad import context
from postroad.services.operations.checks import findings
from postroad.storage.operations import certificates
from tests import dns_server, smtp_peers
from tests.services.operations.checks import setups

RUNNING, STORE = [setups.process()], setups.STORE


async def closed_port() -> int:
    """A port on which nobody listens."""
    async with setups.http_server() as port:
        pass
    return port


def sources(*addresses: str) -> list[dict[str, str]]:
    """Entries of the settings."""
    return [{"name": f"out{number}", "address": address} for number, address in enumerate(addresses)]


async def test_a_host_without_any_of_the_addresses_is_an_error() -> None:
    seen = setups.given(None, {"sources": sources("203.0.113.8", "203.0.113.9")})
    assert await setups.told("source_addresses", seen) == [
        (
            "error",
            "this host has no address of [[sources]]: 203.0.113.8, 203.0.113.9; no mail leaves it",
            "add one to a network interface, or to [[sources]] an address that this host has",
        )
    ]


@pytest.mark.parametrize(
    "addresses, expected",
    [
        (["127.0.0.1", "203.0.113.9"], ("ok", "this host has 127.0.0.1", "")),
        ([], ("skipped", "there are no [[sources]]: the system chooses the address", "")),
    ],
)
async def test_addresses_that_this_host_has_are_fine(addresses: list[str], expected: tuple[str, str, str]) -> None:
    seen = setups.given(None, {"sources": sources(*addresses)})
    assert await setups.told("source_addresses", seen) == [expected]


async def test_a_mail_server_that_cannot_be_reached_is_an_error_for_each_source_address() -> None:
    port = await closed_port()
    seen = setups.given(
        None,
        {"doctor": {"probe_host": f"127.0.0.1:{port}"}, "sources": sources("127.0.0.1", "127.0.0.2")},
    )
    refused = f"connecting to 127.0.0.1 [127.0.0.1]:{port}: connection refused"
    advice = "ask your provider to open outbound port 25, or send through an upstream"
    assert await setups.told("port_25", seen) == [
        ("error", f"mail servers cannot be reached from 127.0.0.1: {refused}", advice),
        ("error", f"mail servers cannot be reached from 127.0.0.2: {refused}", advice),
    ]


async def test_a_mail_server_is_found_in_dns_reached_and_left_politely() -> None:
    async with dns_server.running({"mx.example.net": {"A": ["127.0.0.1"]}}) as dns, smtp_peers.serving() as peer:
        seen = setups.given(dns, {"doctor": {"probe_host": f"mx.example.net:{peer.port}"}})
        assert await setups.told("port_25", seen) == [("ok", f"mx.example.net was reached on port {peer.port}", "")]
        assert peer.commands == ["EHLO mail.example.org", "QUIT"]


async def test_a_mail_server_that_refuses_shows_that_the_port_is_open() -> None:
    async with smtp_peers.serving({"BANNER": "554 5.7.1 listed"}) as peer:
        seen = setups.given(None, {"doctor": {"probe_host": f"127.0.0.1:{peer.port}"}})
        assert await setups.told("port_25", seen) == [
            (
                "warning",
                "the mail server 127.0.0.1 was reached, but refused the session: 554 listed",
                "read its reply; the checks hostname, reverse_dns and blocklists show the usual causes",
            )
        ]


@pytest.mark.parametrize(
    "overrides, reason",
    [
        ({"doctor": {"probe_host": ""}}, "doctor.probe_host is empty"),
        ({"upstreams": [{"name": "relay", "host": "relay.example.net"}]}, "all mail goes through upstreams"),
    ],
)
async def test_without_need_no_mail_server_is_tried(overrides: setups.Overrides, reason: str) -> None:
    assert await setups.told("port_25", setups.given(None, overrides)) == [("skipped", reason, "")]


async def test_a_listener_that_does_not_answer_is_an_error_while_the_service_runs() -> None:
    port = await closed_port()
    overrides = {"http": {"listen": f"0.0.0.0:{port}"}}
    seen = setups.given(None, overrides, store=STORE, running=RUNNING)
    assert await setups.told("listeners", seen) == [
        (
            "error",
            f"http.listen (127.0.0.1:{port}) does not answer: 127.0.0.1: connection refused",
            "see the log, and check the firewall of this host",
        )
    ]
    for stopped in (setups.given(None, overrides, store=STORE), setups.given(None, overrides)):
        assert await setups.told("listeners", stopped) == [("skipped", "the service is not running on this host", "")]
    elsewhere = setups.given(None, overrides, store=STORE, running=[setups.process(roles=["delivery"])])
    assert await setups.told("listeners", elsewhere) == [("skipped", "no role on this host has a listener", "")]


async def test_listeners_with_a_certificate_by_acme_are_asked_over_tls(tmp_path: Path) -> None:
    _, context = setups.certificate(tmp_path)
    async with setups.http_server(tls=context) as port:
        overrides = {"acme": {"names": [setups.NAME]}, "http": {"listen": f"127.0.0.1:{port}"}}
        seen = setups.given(None, overrides, store=STORE, running=RUNNING)
        assert await setups.told("listeners", seen) == [("ok", f"http.listen (127.0.0.1:{port}): reachable", "")]


async def test_before_the_first_certificate_by_acme_one_cause_is_named_once(ctx: context.Context) -> None:
    settings = {
        "acme": {"names": [setups.NAME]},
        "http": {"listen": f"127.0.0.1:{await closed_port()}"},
        "metrics": {"listen": f"127.0.0.1:{(metrics := await closed_port())}"},
    }
    async with smtp_peers.serving() as submission, smtp_peers.serving() as inbound:
        settings["submission"] = {
            "listen": f"127.0.0.1:{submission.port}",
            "tls_listen": f"127.0.0.1:{await closed_port()}",
        }
        settings["inbound"] = {"listen": f"127.0.0.1:{inbound.port}"}
        seen = setups.given(None, settings, store=ctx.store, running=RUNNING)
        refused = f"metrics.listen (127.0.0.1:{metrics}) does not answer: 127.0.0.1: connection refused"
        assert await setups.told("listeners", seen) == [
            ("error", refused, "see the log, and check the firewall of this host"),
            ("skipped", "the listeners with TLS wait for the first certificate; see certificates", ""),
        ]
        assert await setups.told("certificates", seen) == [
            (
                "error",
                f"http, submission, inbound: no certificate for {setups.NAME} is in use",
                "'postroad certificate list' shows why it was not obtained",
            )
        ]
        async with ctx.store.transaction() as tx:
            key = certificates.key_of(seen.settings.acme.directory, seen.settings.acme.names)
            await certificates.claim(tx, key, due_by=setups.NOW, now=setups.NOW, until=setups.NOW + 1)
            ends = {"issued_at": setups.NOW, "expires_at": setups.NOW + 1, "due_at": setups.NOW}
            await certificates.put(tx, key, chain="of a test", private_key=b"sealed", **ends)
        states = [state for state, _, _ in await setups.told("listeners", seen)]
        assert states == ["error"] * 5


async def test_a_service_that_answers_with_an_error_is_reported() -> None:
    async with setups.http_server("503 Service Unavailable") as port:
        seen = setups.given(None, {"http": {"listen": f"127.0.0.1:{port}"}}, store=STORE, running=RUNNING)
        assert await setups.told("listeners", seen) == [
            ("error", f"http.listen (127.0.0.1:{port}) answers /healthz with 503", "see the log")
        ]


async def test_submission_without_starttls_is_an_error(tmp_path: Path) -> None:
    files, context = setups.certificate(tmp_path)
    async with setups.http_server() as port, smtp_peers.serving() as plain, smtp_peers.serving(tls=context) as good:

        def seen(peer: smtp_peers.Peer) -> findings.Subject:
            overrides = {
                "http": {"listen": f"127.0.0.1:{port}", "tls": False},
                "tls": files,
                "submission": {"listen": f"127.0.0.1:{peer.port}"},
            }
            return setups.given(None, overrides, store=STORE, running=RUNNING)

        assert await setups.told("listeners", seen(plain)) == [
            (
                "error",
                f"submission.listen (127.0.0.1:{plain.port}) does not offer STARTTLS, although it has a certificate",
                "see the log for the reason; no other program may listen on this port",
            )
        ]
        both = f"http.listen (127.0.0.1:{port}), submission.listen (127.0.0.1:{good.port}): reachable"
        assert await setups.told("listeners", seen(good)) == [("ok", both, "")]


RETURN_PATH = {"delivery": {"return_path_domain": "bounces.example.org"}}


async def test_a_return_path_without_mail_host_is_an_error() -> None:
    async with dns_server.running(setups.zones(bounces_example_org={})) as dns:
        assert await setups.told("return_path", setups.given(dns, RETURN_PATH)) == [
            (
                "error",
                "bounces.example.org, the domain of return paths, has no MX record, so bounces are lost",
                "add an MX record for bounces.example.org with the name of a host that runs the inbound role",
            )
        ]
    async with dns_server.running(setups.zones(mail_example_org={})) as dns:
        assert await setups.told("return_path", setups.given(dns, RETURN_PATH)) == [
            (
                "error",
                "the mail host mail.example.org of the return path has no address",
                "add an A record for mail.example.org",
            )
        ]


async def test_a_return_path_has_to_lead_to_a_host_that_answers() -> None:
    port = await closed_port()
    async with dns_server.running(setups.zones()) as dns, smtp_peers.serving() as peer:

        async def told(mx_port: int) -> list[tuple[str, str, str]]:
            settings = {"delivery": {"return_path_domain": "bounces.example.org", "mx_port": mx_port}}
            return await setups.told("return_path", setups.given(dns, settings))

        assert await told(peer.port) == [("ok", "mail to bounces.example.org reaches mail.example.org", "")]
        refused = f"connecting to mail.example.org [127.0.0.1]:{port}: connection refused"
        assert await told(port) == [
            (
                "warning",
                f"the mail host mail.example.org of the return path does not answer: {refused}",
                "run the inbound role there and open port 25; behind a router, a host may not reach its own address",
            )
        ]


async def test_return_paths_of_sender_domains_are_checked_with_them() -> None:
    assert await setups.told("return_path", setups.given()) == [
        (
            "skipped",
            "delivery.return_path_domain is empty: 'postroad domain check' checks each sender domain",
            "",
        )
    ]
