"""Security cases A: no URL leads inside, whether it is saved, changed, pinged, sent, tried again or replayed.

One table: a case's number, and what is tried. `N` are neighbours of the written cases. `{port}` is where somebody
listens inside. Each URL is refused when a webhook is made and when it is changed; then it is put into the store, as if
it had been saved under other rules, and used in every way. No TCP connection is even tried.
"""

from collections.abc import Awaitable, Callable

import pytest

from tests import dns_server
from tests.api.webhook_calls import WEBHOOK, check_refusal
from tests.security.webhook_scenario import INSIDE, OWN_NAME, PUBLIC, WebhookScenario
from tests.webhook_server import NAME, OK

# The spellings are tried one by one in `tests/model/test_webhook_urls.py`, where they are told apart. Here one of each
# kind shows that every use asks.
CASES = {
    "A1": "http://example.com/",
    "A2": "https://127.0.0.1/",
    "A3": "https://127.1/",
    "A4": "https://[::ffff:127.0.0.1]/",
    "A5": "https://100.64.0.1/",
    "A6": "https://localhost/",
    "A9": " https://127.0.0.1:{port}/",
    "A10": "https://10.0.0.1.nip.example.org/",
    "N1 userinfo": "https://hooks.example.org@127.0.0.1:{port}/",
    "N2 a host that ends early": "https://127.0.0.1:{port}#@hooks.example.org/",
    "N3 percent": "https://%31%32%37.0.0.1:{port}/",
    "N4 digits and dots of other scripts": "https://127。0。0。1:{port}/",
    "N5 zones and spellings of IPv6": "https://[fe80::1%25lo]/",
    "N6 names of inside": "https://metadata.google.internal/",
    "N7 this service itself": f"https://{OWN_NAME}/",
    "N8 aliases": "https://alias.example.org:{port}/",
    "N9 one address of several": "https://both.example.org:{port}/",
    "N10 names that mean this host": "https://zero.example.org:{port}/",
    "N11 a search list is not used": "https://hooks:{port}/",
}

ZONES: dns_server.Zones = {
    "10.0.0.1.nip.example.org": {"A": ["10.0.0.1"]},
    "alias.example.org": {"CNAME": ["inside.example.org."]},
    "inside.example.org": {"A": [INSIDE]},
    "both.example.org": {"A": [PUBLIC], "AAAA": ["::1"]},
    "zero.example.org": {"A": ["0.0.0.0"]},
    # If anybody asked for these, a name server of the attacker could say what it likes.
    "localhost": {"A": [PUBLIC]},
    "hooks": {"A": [PUBLIC]},
}


TABLE = [pytest.param(url, id=f"{case} {ascii(url)[1:-1]:.70}") for case, url in CASES.items()]


def blocked(uses: dict[str, str | None]) -> dict[str, str | None]:
    """Those uses that did not fail as a forbidden destination does."""
    return {use: error for use, error in uses.items() if not (error or "").startswith("blocked_destination: ")}


def changing(scenario: WebhookScenario, addresses: list[str]) -> Callable[[], Awaitable[None]]:
    """What somebody does who owns the name's zone."""

    async def change() -> None:
        scenario.dns.zones[NAME] = {
            "A": [address for address in addresses if ":" not in address],
            "AAAA": [address for address in addresses if ":" in address],
        }

    return change


@pytest.mark.parametrize("url", TABLE)
async def test_a_url_that_leads_inside_is_refused_and_never_connected(scenario: WebhookScenario, url: str) -> None:
    scenario.dns.zones |= ZONES
    bad = url.replace("{port}", str(scenario.inside.port))
    check_refusal(await scenario.save(bad), 400, "invalid_request")
    await scenario.subscribe()
    sentence = check_refusal(await scenario.save(bad), 400, "invalid_request")
    assert sentence.startswith("url: ")
    assert (await scenario.call("GET", WEBHOOK)).json()["webhook"]["url"] == scenario.public.literal_url

    async def plant() -> None:
        await scenario.plant(bad)

    assert blocked(await scenario.every_use(plant)) == {}
    assert scenario.dialled == []
    assert (scenario.inside.connections, len(scenario.public.requests)) == (0, 1)


async def test_what_is_not_even_text_is_refused(scenario: WebhookScenario) -> None:
    """A9: what JSON can say and no store could keep."""
    for url in (
        b'"https://\\ud800.example.org/"',
        b'"https://example.org/\\udfff"',
        b"127001",
        b"null",
        b'["https://x"]',
    ):
        refused = await scenario.call("PUT", WEBHOOK, content=b'{"url": %s}' % url)
        check_refusal(refused, 400, "invalid_request")
    assert (await scenario.call("GET", WEBHOOK)).json()["webhook"] is None


@pytest.mark.parametrize(
    "addresses",
    [[INSIDE], ["10.0.0.1"], ["169.254.169.254"], ["::1"], ["fd00::1"], [PUBLIC, INSIDE], [PUBLIC, "::1"]],
    ids=lambda addresses: f"A11 {' '.join(addresses)}",
)
async def test_a_name_that_turns_private_is_never_connected_again(
    scenario: WebhookScenario, addresses: list[str]
) -> None:
    """A connection that was kept from before is not used either."""
    await scenario.subscribe(scenario.public.url)
    assert blocked(await scenario.every_use(changing(scenario, addresses))) == {}
    assert scenario.dialled == []
    assert (scenario.inside.connections, len(scenario.public.requests)) == (0, 1)
    check_refusal(await scenario.save(scenario.public.url), 400, "invalid_request")
    # And when the name is public again, everything goes on.
    await changing(scenario, [PUBLIC])()
    scenario.public.answer = OK
    assert (await scenario.ping())["status"] == "succeeded"


async def test_what_is_dialled_is_seen(scenario: WebhookScenario) -> None:
    """The control: with a URL that may be used, the same uses reach the endpoint, over TCP that is noticed."""
    await scenario.subscribe(scenario.public.url)

    async def close_connections() -> None:
        scenario.public.answer = b"HTTP/1.1 500 Broken\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

    assert set((await scenario.every_use(close_connections)).values()) == {None}
    assert set(scenario.dialled) == {PUBLIC}
    assert len(scenario.public.requests) == 5
