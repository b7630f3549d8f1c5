"""An incident, with a real service: at noon a provider blocks one of two source addresses.

`python -m tests.browser.incident` takes the pictures of docs/troubleshooting.md, and test_incident.py runs the same.
The service runs as in production; a DNS server and a mail server on loopback stand for the internet.
"""

import asyncio
import contextlib
import email
import email.message
import email.policy
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx
from playwright import async_api

from postroad import config, context
from postroad.model.people import callers
from postroad.roles import composition
from postroad.services.accounts import account_registry
from postroad.services.people import credentials, users
from postroad.services.queue import sources
from tests import accepted_mail, contexts, dns_server, smtp_peers
from tests.browser import chromium, dev_service, logins, screenshots
from tests.cli import cli_runner
from tests.delivery import engine_harness

FOLDER: Final = screenshots.FOLDER.parent / "assets" / "incident"
BLOCK: Final = "421 4.7.1 Try again later; {client} is blocked using our reputation data"
OPERATOR: Final = dev_service.Login("ops@example.com", "blocks-come-and-go")
# Of the mail of a part of the day, to the provider and to others.
MESSAGES: Final = 30
# Which address sends is by chance as long as both are idle.
MAX_TIMES: Final = 60
WAIT_SECONDS: Final = 120
Picture = Callable[[async_api.Page, str], Awaitable[None]]


@dataclass
class Incident:
    """A running service, and the internet around it."""

    base_url: str
    addresses: list[str]
    shop: tuple[str, str]
    ctx: context.Context
    peers: tuple[smtp_peers.Peer, smtp_peers.Peer]
    blocked: set[str]

    async def send(self, part: str) -> None:
        """Mail to the provider and to others; returns when all of it has arrived."""
        async with httpx.AsyncClient(base_url=self.base_url, auth=self.shop, timeout=WAIT_SECONDS) as http:
            posts = [self._post(http, part, number) for number in range(2 * MESSAGES)]
            ids = await asyncio.gather(*posts)
            await self.until(lambda: self._is_delivered(http, ids), what=f"the mail of the {part}")

    async def send_from(self, addresses: list[str], *, part: str) -> None:
        """Mail until the provider has got some of it from each of these addresses."""
        for number in range(MAX_TIMES):
            await self.send(f"{part}-{number}-")
            if self.sources_of(part) == set(addresses):
                return
        raise AssertionError(f"{part}: {self.sources_of(part)}")

    async def send_until_paused(self, part: str) -> None:
        """Mail until the first address is paused for the provider: it gets fewer refusals than it sends messages."""
        for number in range(MAX_TIMES):
            await self.send(f"{part}-{number}-")
            if any(one.pause for one in (await sources.find(self.ctx, "out1")).providers):
                return
        raise AssertionError(f"{part}: the address is not paused")

    async def until(self, ready: Callable[[], Awaitable[bool]], *, what: str) -> None:
        """Wait for something that the service does by itself."""
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                while not await ready():
                    await asyncio.sleep(0.2)
        except TimeoutError:
            raise AssertionError(f"did not happen: {what}") from None

    @property
    def arrived(self) -> list[smtp_peers.Transaction]:
        """All mail that has arrived."""
        return [one for peer in self.peers for one in peer.transactions]

    def notices(self) -> list[email.message.EmailMessage]:
        """The mail that the operator has got."""
        to_operator = [one for one in self.arrived if OPERATOR.email in "".join(one.recipients)]
        return [email.message_from_bytes(one.content, policy=email.policy.default) for one in to_operator]

    def sources_of(self, part: str) -> set[str]:
        """The addresses that the provider got the mail of a part of the day from."""
        own = [one for one in self.arrived if one.recipients[0].startswith(f"RCPT TO:<{part}")]
        return {one.client for one in own if one.recipients[0].endswith("@gmail.com>")}

    async def _post(self, http: httpx.AsyncClient, part: str, number: int) -> str:
        body = {
            "from": "Corner Shop <orders@example.com>",
            "to": [f"{part}{number}@{'gmail.com' if number % 2 else 'example.org'}"],
            "subject": f"Your order {4711 + number}",
            "text": "Thank you for your order.",
        }
        answer = await http.post("/emails", json=body, headers={"Idempotency-Key": f"{part}-{number}"})
        assert answer.status_code == 202, answer.text
        message_id: str = answer.json()["id"]
        return message_id

    async def _is_delivered(self, http: httpx.AsyncClient, ids: list[str]) -> bool:
        for message_id in ids:
            shown = (await http.get(f"/emails/{message_id}")).json()
            if shown["status"] != "delivered":
                assert shown["status"] in {"queued", "sending"}, shown
                return False
        return True


@contextlib.asynccontextmanager
async def beginning(folder: Path) -> AsyncIterator[Incident]:
    """The morning: two addresses in one pool, an account, and an operator who gets mail."""
    *addresses, google, others = engine_harness.loopback_addresses(4)
    blocked = set[str]()

    def greet(client: str) -> smtp_peers.Answer:
        # Slowly, so that several connections are open before the first refusal is read.
        return smtp_peers.Drip(BLOCK.format(client=client), 0.01) if client in blocked else "220 mx.google.com ESMTP"

    zones = engine_harness.zones_of({"mx.google.com": google}, domain="gmail.com")
    for name in ("example.org", "example.com"):
        zones |= {name: {"MX": [f"10 mx.{name}."]}, f"mx.{name}": {"A": [others]}}
    async with (
        smtp_peers.serving({"BANNER": greet}, host=google) as first,
        smtp_peers.serving(host=others, port=first.port) as second,
        dns_server.running(zones) as dns,
    ):
        file = folder / "postroad.toml"
        file.write_text(
            SETTINGS.format(
                folder=folder,
                installation_key=contexts.SECRET_KEY,
                mx_port=first.port,
                resolver=dns.address,
                retry_seconds=[1] * 20,
                addresses=addresses,
            )
        )
        async with composition.open_context(config.load(file, environment={})) as ctx:
            shop = await _move_in(ctx)
            with cli_runner.Service("serve", "--config", str(file), folder=folder) as service:
                base_url = f"http://{service.line('started')['http']}"
                yield Incident(base_url, addresses, shop, ctx, (first, second), blocked)
                code, _ = service.stop()
                assert code == 0, service.errors.read_text()


SETTINGS: Final = """
[database]
url = "sqlite:///{folder}/postroad.db"
[security]
installation_key = "{installation_key}"
[http]
listen = "127.0.0.1:0"
drain_seconds = 0
[operator]
from = "postmaster@example.com"
[delivery]
hostname = "mail.example.com"
mx_port = {mx_port}
resolvers = ["{resolver}"]
allow_private = ["127.0.0.0/8"]
mta_sts = false
retry_seconds = {retry_seconds}
[providers.google]
messages_per_connection = 1
[warmup]
enabled = false
[testing]
sign = false
[[sources]]
name = "out1"
address = "{addresses[0]}"
hello_name = "out1.example.com"
[[sources]]
name = "out2"
address = "{addresses[1]}"
hello_name = "out2.example.com"
"""


async def _move_in(ctx: context.Context) -> tuple[str, str]:
    """An account with a domain, and its owner, who is an operator; returns a credential."""
    account = await account_registry.create(ctx, "Corner Shop")
    await accepted_mail.allow_sending(ctx, account.id, domain="example.com", amount=10_000)
    await users.create(ctx, account.id, email=OPERATOR.email, password=OPERATOR.password, role=callers.Role.OWNER)
    await users.add_operator(ctx, OPERATOR.email)
    credential, password = await credentials.create(ctx, account.id, "shop")
    return credential.username, password


async def run(incident: Incident, tab: async_api.Page, picture: Picture) -> None:
    """The incident, from the morning to the evening. What it shows is checked where a picture is taken of it."""
    main = tab.locator("main")
    await logins.log_in(tab, OPERATOR)
    await incident.send_from(incident.addresses, part="morning")

    # 12:00. The provider blocks new connections of the first address, which is paused for it after some refusals.
    incident.blocked.add(incident.addresses[0])
    await incident.send_until_paused("noon")
    await tab.goto("/operator/sources")
    await async_api.expect(main).to_contain_text("Google blocks it: 4.7.1 Try again later")
    await picture(tab, "sources")
    await tab.goto("/operator/sources/out1")
    await async_api.expect(main).to_contain_text("Google")
    await picture(tab, "source")

    # 12:01. The operator gets one mail about it, from the address that still sends.
    async def is_told() -> bool:
        return bool(incident.notices())

    await incident.until(is_told, what="the notice")
    (notice,) = incident.notices()
    assert notice["Subject"] == "Google blocks the source address out1"
    shown = notice.get_body(("plain",))
    assert shown is not None
    assert shown.get_content().startswith("Google blocks the source address out1: 4.7.1 Try again later")

    # 12:02. Nothing has bounced, and nothing waits: the second address sends for both.
    await incident.send("afternoon")
    assert incident.sources_of("afternoon") == {incident.addresses[1]}
    await tab.goto("/operator/queue")
    await async_api.expect(main).to_contain_text("By recipient domain")
    await picture(tab, "queue")

    # 16:00. The provider has lifted the block, and the operator resumes the address.
    incident.blocked.clear()
    await tab.goto("/operator/sources/out1")
    await tab.get_by_role("button", name="Resume").first.click()
    await async_api.expect(main).not_to_contain_text("Google blocks it")
    await picture(tab, "resumed")
    await incident.send_from(incident.addresses, part="evening")


async def main() -> None:
    """Run the incident, and take its pictures."""
    program = chromium.find()
    if program is None:
        raise SystemExit(f"no Chromium was found; {chromium.REMEDY}")

    async def picture(tab: async_api.Page, name: str) -> None:
        await screenshots.save_picture(tab, FOLDER / f"{name}.png", is_whole=False)

    with tempfile.TemporaryDirectory(prefix="postroad-") as name:
        async with beginning(Path(name)) as incident, chromium.running(program) as browser:
            width, height = screenshots.SIZES["desktop"]
            opened = await browser.new_context(
                base_url=incident.base_url, viewport={"width": width, "height": height}, reduced_motion="reduce"
            )
            await run(incident, await opened.new_page(), picture)
            await opened.close()


if __name__ == "__main__":
    asyncio.run(main())
