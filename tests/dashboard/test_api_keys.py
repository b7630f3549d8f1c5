"""The page of API keys: made, shown once, listed, revoked."""

import html

import pytest

from postroad import context
from postroad.model.people import callers
from postroad.services.domains import domain_registry as domains
from postroad.services.people import api_keys, authentication, credentials, users
from postroad.storage.people import credentials as stored
from tests import contexts
from tests.dashboard import browser_client
from tests.dashboard.browser_client import Browser
from tests.dashboard.test_credentials import copied

SEND = frozenset({callers.Permission.SEND})


async def make(ctx: context.Context, account_id: str, name: str = "shop") -> stored.ApiKey:
    """A key under the oldest credential, which is made when there is none."""
    if not await credentials.of_account(ctx, account_id):
        await credentials.create(ctx, account_id, "first")
    key, _ = await api_keys.create(ctx, account_id, credential_id=None, name=name, scopes=SEND)
    return key


async def test_the_first_key_needs_no_credential(ctx: context.Context, browser: Browser) -> None:
    page = (await browser.get("/keys")).text
    assert "No API keys yet" in page
    assert 'action="/keys"' in page
    assert 'name="credential_id"' not in page
    assert "YOUR_API_KEY" in page
    made = await browser.post("/keys", {"name": "shop"})
    assert made.status_code == 201
    (credential,) = await credentials.of_account(ctx, browser.account_id)
    (key,) = await api_keys.of_account(ctx, browser.account_id)
    assert key.credential_id == credential.id
    label = '<label for="field-credential_id">Rate-limit group</label>'
    assert label not in (await browser.get("/keys")).text
    await credentials.create(ctx, browser.account_id, "second")
    assert label in (await browser.get("/keys")).text


async def test_code_for_a_template_of_thousands_of_variables_is_written_without_them(browser: Browser) -> None:
    names = "".join(f"{{{{name_{number}}}}}" for number in range(5_000))
    wide = {"alias": "wide", "subject": "Hello", "text": "{{#rows}}" + names + "{{/rows}}"}
    await browser.post("/template/publish", wide)
    made = await browser.post("/keys", {"name": "shop", "templates": "wide"})
    assert made.status_code == 201
    assert "name_1" not in made.text
    assert "&#34;template&#34;: &#34;wide&#34;" in made.text
    # The editor says so too, below the content.
    assert "name_1" not in (await browser.get("/templates/wide")).text.partition('id="use"')[2]


async def test_a_key_that_does_not_send_is_shown_with_a_request_that_it_may_make(browser: Browser) -> None:
    for scope, path in (
        ("read", "/v1/messages"),
        ("templates", "/v1/templates"),
        ("suppressions", "/v1/suppressions"),
        ("webhooks", "/v1/webhooks"),
        ("domains", "/v1/domains"),
        ("statistics", "/v1/statistics"),
        ("team", "/v1/api-keys"),
    ):
        made = html.unescape((await browser.post("/keys", {"name": scope, "access": "custom", "scopes": [scope]})).text)
        secret = copied(made, after="<dt>API key</dt>")
        assert f"curl {browser_client.BASE_URL}{path} -H 'Authorization: Bearer {secret}'" in made
        assert "/emails" not in made.partition("<main")[2]


async def test_a_new_key_says_what_its_snippet_waits_for(browser: Browser) -> None:
    limits = {"domains": "later.example", "templates": "later", "approval_above": "0"}
    made = html.unescape((await browser.post("/keys", {"name": "shop", **limits})).text)
    assert "hello@later.example" in made
    for said in (
        "Your account cannot send from later.example yet.",
        "There is no template later yet.",
        "must be approved under",
    ):
        assert said in made, said


async def test_a_new_key_is_shown_once_and_may_send(ctx: context.Context, browser: Browser) -> None:
    first, _ = await credentials.create(ctx, browser.account_id, "first")
    second, _ = await credentials.create(ctx, browser.account_id, "second")
    made = await browser.post("/keys", {"name": "shop", "credential_id": second.id})
    assert made.status_code == 201
    secret = copied(made.text, after="<dt>API key</dt>")
    who = await authentication.authenticate(ctx, f"Bearer {secret}", client_address="127.0.0.1")
    assert (who.credential_id, who.permissions) == (second.id, SEND)
    assert first.id != second.id
    assert f"'Authorization: Bearer {secret}'" in html.unescape(made.text)
    assert f"curl {browser_client.BASE_URL}/emails" in made.text
    assert "YOUR_API_KEY" not in made.text
    again = (await browser.get("/keys")).text
    assert secret not in again
    (key,) = await api_keys.of_account(ctx, browser.account_id)
    assert key.hint in again
    assert "second" in again


async def test_a_key_may_be_for_test_mode(ctx: context.Context, browser: Browser) -> None:
    await credentials.create(ctx, browser.account_id, "first")
    made = await browser.post("/keys", {"name": "CI", "mode": "test"})
    assert "test: what it sends goes to the simulator" in made.text
    assert copied(made.text, after="<dt>API key</dt>").startswith("pr_test_")
    assert "pr_test_" in (await browser.get("/keys")).text


async def test_a_key_has_the_scopes_that_are_ticked(ctx: context.Context, browser: Browser) -> None:
    await credentials.create(ctx, browser.account_id, "first")
    made = await browser.post("/keys", {"name": "reports", "access": "custom", "scopes": ["read", "send"]})
    assert "<dt>Scopes</dt><dd>send, read</dd>" in made.text
    (key,) = await api_keys.of_account(ctx, browser.account_id)
    assert key.scopes == "send read"
    assert "scopes send, read<" in (await browser.get("/keys")).text


@pytest.mark.parametrize("access, scopes", [("sending", "send"), ("read", "read"), ("full", "*")])
async def test_a_preset_chooses_the_scopes_whatever_is_ticked(
    ctx: context.Context, browser: Browser, access: str, scopes: str
) -> None:
    await users.add_operator(ctx, (await users.of_account(ctx, browser.account_id))[0].email)
    for ticked, expected in (("team", scopes), ("operator", f"{scopes} operator")):
        made = await browser.post("/keys", {"name": ticked, "access": access, "scopes": ["domains", ticked]})
        assert made.status_code == 201
        keys = {key.name: key.scopes for key in await api_keys.of_account(ctx, browser.account_id)}
        assert keys[ticked] == expected


async def test_the_sender_domains_to_choose_from_are_those_of_the_account(
    ctx: context.Context, browser: Browser, stranger: Browser
) -> None:
    assert 'name="domains"' not in (await browser.get("/keys")).text
    await domains.add(ctx, browser.account_id, "mine.example", verified=True)
    await domains.add(ctx, stranger.account_id, "theirs.example", verified=True)
    page = (await browser.get("/keys")).text
    assert '<input type="checkbox" name="domains" value="mine.example">' in page
    assert "theirs.example" not in page


async def test_a_key_has_the_limits_of_the_form_and_shows_their_use(
    ctx: context.Context, browser: Browser, clock: contexts.Clock
) -> None:
    await credentials.create(ctx, browser.account_id, "first")
    fields = {
        "name": "agency",
        "domains": ["example.com", "News.Example.com"],
        "networks": "192.0.2.0/24\r\n2001:db8::1",
        "templates": "welcome",
        "recipients_per_day": "1000",
        "credit_budget": "5000",
        "approval_above": "50",
        "expires_on": "2027-01-15",
    }
    assert (await browser.post("/keys", fields)).status_code == 201
    (key,) = await api_keys.of_account(ctx, browser.account_id)
    assert key.limits == callers.KeyLimits(
        domains=("example.com", "news.example.com"),
        networks=("192.0.2.0/24", "2001:db8::1/128"),
        templates=("welcome",),
        recipients_per_day=1000,
        credit_budget=5000,
        approval_above=50,
        expires_at=clock.now + 16 * 3600 * 1_000_000,
    )
    async with ctx.store.transaction() as tx:
        today = clock.now // (24 * 3600 * 1_000_000)
        await stored.put_key_usage(tx, {(key.id, key.account_id): callers.KeyUsage(today, 7, 1234)})
    page = (await browser.get("/keys")).text
    for shown in (
        "from example.com, news.example.com",
        "templates welcome",
        "allowed IPs 192.0.2.0/24, 2001:db8::1/128",
        "7 of 1,000 recipients today",
        "1,234 of 5,000 credits used",
        "approval above 50 recipients",
        "status-active",
    ):
        assert shown in page


async def test_an_expired_key_is_shown_as_such(ctx: context.Context, browser: Browser, clock: contexts.Clock) -> None:
    await credentials.create(ctx, browser.account_id, "first")
    soon = callers.KeyLimits(expires_at=clock.now + 1_000_000)
    await api_keys.create(ctx, browser.account_id, credential_id=None, name="shop", scopes=SEND, limits=soon)
    assert "status-active" in (await browser.get("/keys")).text
    clock.pass_seconds(1)
    page = (await browser.get("/keys")).text
    assert "status-expired" in page
    assert "status-active" not in page


async def test_the_form_has_every_scope(ctx: context.Context, browser: Browser) -> None:
    await credentials.create(ctx, browser.account_id, "first")
    page = (await browser.get("/keys")).text
    for scope in callers.SCOPES:
        assert f'name="scopes" value="{scope}"' in page
    # Nobody but an operator can give this one.
    assert 'value="operator"' not in page
    (user, *_) = await users.of_account(ctx, browser.account_id)
    await users.add_operator(ctx, user.email)
    assert 'name="scopes" value="operator"' in (await browser.get("/keys")).text


async def test_bad_input_is_refused_and_makes_nothing(
    ctx: context.Context, browser: Browser, stranger: Browser
) -> None:
    await credentials.create(ctx, browser.account_id, "first")
    theirs, _ = await credentials.create(ctx, stranger.account_id, "theirs")
    for fields, status in (
        ({"name": ""}, 400),
        ({"name": "n" * 101}, 400),
        ({"name": "shop", "may_read": "true"}, 400),
        ({"name": "shop", "access": "custom", "scopes": "change"}, 400),
        ({"name": "shop", "access": "custom"}, 400),
        ({"name": "shop", "domains": "not/a/domain"}, 400),
        ({"name": "shop", "networks": "192.0.2.1/24"}, 400),
        ({"name": "shop", "templates": "A"}, 400),
        ({"name": "shop", "recipients_per_day": "many"}, 400),
        ({"name": "shop", "credit_budget": "0"}, 400),
        ({"name": "shop", "expires_on": "2027-01-14"}, 400),
        ({"name": "shop", "expires_on": "tomorrow"}, 400),
        ({"name": "shop", "credential_id": theirs.id}, 404),
        ({"name": "shop", "credential_id": "nonsense"}, 404),
    ):
        assert (await browser.post("/keys", fields)).status_code == status, fields
    assert await api_keys.of_account(ctx, browser.account_id) == []


async def test_revoking_stops_a_key(ctx: context.Context, browser: Browser) -> None:
    key = await make(ctx, browser.account_id)
    assert 'aria-label="Revoke the key shop"' in (await browser.get("/keys")).text
    revoked = await browser.post(f"/keys/{key.id}/revoke")
    assert browser_client.location_of(revoked) == "/keys"
    page = (await browser.follow(revoked)).text
    assert "API key revoked." in page
    assert "status-revoked" in page
    assert "/revoke" not in page
    assert (await browser.post(f"/keys/{key.id}/revoke")).status_code == 404


async def test_a_revoked_credential_is_not_offered_and_its_keys_are_revoked(
    ctx: context.Context, browser: Browser
) -> None:
    key = await make(ctx, browser.account_id)
    kept, _ = await credentials.create(ctx, browser.account_id, "kept")
    await credentials.revoke(ctx, browser.account_id, key.credential_id)
    other, _ = await credentials.create(ctx, browser.account_id, "other")
    page = (await browser.get("/keys")).text
    assert f'<option value="{kept.id}">kept</option>' in page
    assert f'<option value="{other.id}">other</option>' in page
    assert f'value="{key.credential_id}"' not in page
    assert "status-revoked" in page
    assert "first" in page
