"""No URL of `/v1/webhook` leads inside, when it is saved, changed or used."""

from collections.abc import Iterator

import msgspec
import pytest
import trustme

from postroad import config, context
from postroad.services.webhooks import endpoints
from postroad.storage.mail import webhooks
from tests import webhook_rows, webhook_server
from tests.api.management import AccountClients
from tests.api.webhook_calls import PING, WEBHOOK, check_refusal
from tests.webhook_rows import URL


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def settings(database_url: str, authority: trustme.CA) -> Iterator[config.Settings]:
    with webhook_server.authority_file(authority) as ca_file:
        yield webhook_rows.settings(database_url, ca_file=ca_file)


BAD_URLS = {
    "scheme": [
        "http://example.com/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "//example.com",
        "",
        "javascript:alert(1)",
        "unix:///var/run/x",
    ],
    "private": [
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://0.0.0.0/",
        "https://10.0.0.1/",
        "https://192.168.1.1/",
        "https://172.16.0.1/",
        "https://169.254.169.254/latest/meta-data/",
        "https://127.0.0.3/",
    ],
    "number": [
        "https://127.1/",
        "https://2130706433/",
        "https://0x7f000001/",
        "https://0177.0.0.1/",
        "https://0/",
        "https://127.0.0.1./",
        "https://0x7f.1/",
    ],
    "embedded": [
        "https://[::ffff:127.0.0.1]/",
        "https://[64:ff9b::a9fe:a9fe]/",
        "https://[2002:7f00:1::1]/",
        "https://[::127.0.0.1]/",
        "https://[fec0::1]/",
        "https://[fe80::1%25eth0]/",
        "https://[::]/",
        "https://[fd00::1]/",
    ],
    "special": [
        "https://100.64.0.1/",
        "https://198.18.0.1/",
        "https://240.0.0.1/",
        "https://224.0.0.1/",
        "https://255.255.255.255/",
        "https://192.0.2.1/",
    ],
    "name": [
        "https://localhost/",
        "https://LOCALHOST/",
        "https://localhost./",
        "https://foo.localhost/",
        "https://ｌocalhost/",
        "https://loc\u00adalhost/",
        "https://①②⑦.0.0.1/",
        "https://db/",
        "https://printer.local/",
        "https://metadata.google.internal/",
    ],
    "userinfo": [
        "https://user:password@example.com/",
        "https://example.com@127.0.0.1/",
        "https://127.0.0.1\\@example.com/",
        "https://@example.com/",
    ],
    "form": [
        " https://example.com/",
        "\thttps://example.com/",
        "https://example.com/\t",
        "https://exa\tmple.com/",
        "https://example.com/\r\nHost: x",
        "https://example.com/\n",
        "https://example.com/\0",
        "https://example.com/" + "a" * 10_000,
        "https://[not-ip]/",
        "https://example.com:0/",
        "https://example.com:99999/",
        "https://example.com:x/",
        "https://",
        "https:///path",
        "https://exa mple.com/",
        "https://example.com/#fragment",
    ],
}


@pytest.mark.parametrize("kind", BAD_URLS)
async def test_a_url_that_could_lead_inside_is_refused_when_made_and_when_changed(
    mine: AccountClients, kind: str
) -> None:
    for exists in (False, True):
        if exists:
            assert (await mine.owner.put(WEBHOOK, json={"url": URL})).status_code == 200
        for url in BAD_URLS[kind]:
            refused = await mine.owner.put(WEBHOOK, json={"url": url})
            assert check_refusal(refused, 400, "invalid_request").startswith("url: "), url
        webhook = (await mine.owner.get(WEBHOOK)).json()["webhook"]
        assert (webhook and webhook["url"]) == (URL if exists else None)


async def test_a_ping_goes_nowhere_when_the_url_is_no_longer_allowed(
    ctx: context.Context, mine: AccountClients, authority: trustme.CA
) -> None:
    async with webhook_server.running(host="127.0.0.1", authority=authority) as inside:
        await mine.owner.put(WEBHOOK, json={"url": URL})
        webhook = await endpoints.find(ctx, mine.account_id)
        assert webhook is not None
        async with ctx.store.transaction() as tx:
            await webhooks.update(tx, msgspec.structs.replace(webhook, url=inside.literal_url))
        delivery = (await mine.owner.post(PING)).json()["delivery"]
        assert inside.connections == 0
    assert delivery["status"] == "failed"
    assert delivery["attempts"][0]["error"].startswith("blocked_destination: ")
