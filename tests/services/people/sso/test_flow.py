"""From the login page to a provider and back, and every answer that must not count."""

from typing import Any
from urllib import parse

import pytest

from postroad import context, errors
from postroad.model.people import login_rules
from postroad.services.people import sso_flow
from postroad.storage.people import accounts
from tests import contexts, oidc_provider
from tests.services import audit_entries
from tests.services.people.sso import sso_setup


async def test_the_request_has_everything_that_protects_the_answer(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    await sso_setup.connect(ctx, account.id, provider, scopes="email groups")
    begun = await sso_flow.begin(sso_setup.visitor(ctx), account.id, next_path="/domains", login_hint="jo@corp.example")
    query = dict(parse.parse_qsl(parse.urlsplit(begun.url).query))
    secrets = {name: query.pop(name) for name in ("state", "nonce", "code_challenge")}
    assert query == {
        "response_type": "code",
        "client_id": "postroad",
        "redirect_uri": f"https://mail.example.org/sso/{account.id}/callback",
        "scope": "openid email groups",
        "code_challenge_method": "S256",
        "login_hint": "jo@corp.example",
    }
    assert [len(value) for value in secrets.values()] == [43, 43, 43]
    assert len(set(secrets.values())) == 3
    again = await sso_flow.begin(sso_setup.visitor(ctx), account.id, next_path="/")
    assert secrets["state"] not in again.url


async def test_the_domain_of_an_email_decides_and_nothing_else(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    await sso_setup.connect(ctx, account.id, provider)
    for name in ("nobody@corp.example", "Jo@CORP.example"):
        assert await sso_flow.connection_for(ctx, name) == account.id
    for name in ("jo@sub.corp.example", "jo@other.example", "owner@example.com"):
        with pytest.raises(errors.InvalidRequest, match="there is no single sign-on for"):
            await sso_flow.connection_for(ctx, name)
    with pytest.raises(errors.InvalidRequest, match="not an email address"):
        await sso_flow.connection_for(ctx, "corp.example")


async def test_the_provider_of_the_installation_is_for_its_domains_first(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    await sso_setup.connect(ctx, account.id, provider)
    everybody = sso_setup.changed(ctx, issuer=provider.issuer, client_id="postroad")
    assert await sso_flow.connection_for(everybody, "jo@other.example") == sso_flow.INSTALLATION
    assert await sso_flow.connection_for(everybody, "jo@corp.example") == account.id
    some = sso_setup.changed(ctx, issuer=provider.issuer, client_id="postroad", email_domains=("corp.example",))
    assert await sso_flow.connection_for(some, "jo@corp.example") == sso_flow.INSTALLATION
    with pytest.raises(errors.InvalidRequest, match=r"no single sign-on for other.example"):
        await sso_flow.connection_for(some, "jo@other.example")
    with pytest.raises(errors.InvalidRequest, match="none of the email domains"):
        await sso_flow.begin(sso_setup.visitor(some), account.id, next_path="/")


async def test_a_whole_attempt_tells_the_person(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    await sso_setup.connect(ctx, account.id, provider)
    completed = await sso_setup.complete(ctx, account.id, provider)
    assert completed.person.email == "jo@corp.example"
    assert completed.person.subject == oidc_provider.SUBJECT


@pytest.mark.parametrize(
    "answer",
    [{"state": "x" * 43}, {"state": None}, {"state": ""}],
    ids=["another state", "no state", "an empty state"],
)
async def test_an_answer_to_another_request_is_refused(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider, answer: dict[str, Any]
) -> None:
    await sso_setup.connect(ctx, account.id, provider)
    with pytest.raises(errors.InvalidRequest, match="started in another browser"):
        await sso_setup.complete(ctx, account.id, provider, **answer)
    assert provider.asked("/token") == 0


async def test_an_attempt_belongs_to_its_browser_its_time_and_its_connection(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider, clock: contexts.Clock
) -> None:
    await sso_setup.connect(ctx, account.id, provider)
    visitor = sso_setup.visitor(ctx)
    begun = await sso_flow.begin(visitor, account.id, next_path="/")
    other = await sso_flow.begin(visitor, account.id, next_path="/")
    answer = provider.authorize(begun.url)
    for cookie in (None, "", "forged.00", other.cookie, begun.cookie[:-1] + ("0" if begun.cookie[-1] != "0" else "1")):
        with pytest.raises(errors.InvalidRequest, match="started in another browser"):
            await sso_flow.complete(visitor, account.id, cookie=cookie, answer=answer)
    with pytest.raises(errors.InvalidRequest, match="started in another browser"):
        await sso_flow.complete(visitor, sso_flow.INSTALLATION, cookie=begun.cookie, answer=answer)
    clock.pass_seconds(sso_flow.ATTEMPT_SECONDS)
    with pytest.raises(errors.InvalidRequest, match="took too long"):
        await sso_flow.complete(visitor, account.id, cookie=begun.cookie, answer=answer)
    assert provider.asked("/token") == 0


async def test_a_code_works_once(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    await sso_setup.connect(ctx, account.id, provider)
    visitor = sso_setup.visitor(ctx)
    begun = await sso_flow.begin(visitor, account.id, next_path="/")
    answer = provider.authorize(begun.url)
    await sso_flow.complete(visitor, account.id, cookie=begun.cookie, answer=answer)
    with pytest.raises(errors.InvalidRequest, match="400: invalid_grant"):
        await sso_flow.complete(visitor, account.id, cookie=begun.cookie, answer=answer)


async def test_the_code_of_another_attempt_is_refused(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    """Somebody who has stolen a code cannot use it: the verifier is in the browser that began."""
    await sso_setup.connect(ctx, account.id, provider)
    visitor = sso_setup.visitor(ctx)
    victim = await sso_flow.begin(visitor, account.id, next_path="/")
    thief = await sso_flow.begin(visitor, account.id, next_path="/")
    stolen = provider.authorize(victim.url)["code"]
    answer = {**provider.authorize(thief.url), "code": stolen}
    with pytest.raises(errors.InvalidRequest, match="400: invalid_grant"):
        await sso_flow.complete(visitor, account.id, cookie=thief.cookie, answer=answer)


async def test_a_token_that_was_made_for_another_attempt_is_refused(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    await sso_setup.connect(ctx, account.id, provider)
    provider.claims = {"nonce": "of another attempt"}
    with pytest.raises(errors.Forbidden, match="another login"):
        await sso_setup.complete(ctx, account.id, provider)


@pytest.mark.parametrize(
    "answer", [{"iss": "https://login.other.example"}, {"iss": None}], ids=["another issuer", "none"]
)
async def test_an_answer_of_another_provider_is_refused(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider, answer: dict[str, Any]
) -> None:
    """RFC 9207: a provider that sends `iss` must send the right one."""
    await sso_setup.connect(ctx, account.id, provider)
    with pytest.raises(errors.InvalidRequest, match="from another provider"):
        await sso_setup.complete(ctx, account.id, provider, **answer)
    assert provider.asked("/token") == 0


async def test_a_provider_without_iss_may_leave_it_out_and_not_lie(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    provider.sends_iss = False
    await sso_setup.connect(ctx, account.id, provider)
    assert (await sso_setup.complete(ctx, account.id, provider)).person.subject == oidc_provider.SUBJECT
    with pytest.raises(errors.InvalidRequest, match="from another provider"):
        await sso_setup.complete(ctx, account.id, provider, iss="https://login.other.example")


@pytest.mark.parametrize(
    "answer, why",
    [
        ({"error": "access_denied", "code": None}, "it responded: access_denied"),
        ({"error": "<script>\x07", "code": None}, "it refused"),
        ({"code": None}, "no code"),
        ({"code": ""}, "no code"),
        ({"code": "x" * 5_000}, "no code"),
    ],
)
async def test_a_refusal_of_the_provider_is_told(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider, answer: dict[str, Any], why: str
) -> None:
    await sso_setup.connect(ctx, account.id, provider)
    with pytest.raises(errors.InvalidRequest, match=why):
        await sso_setup.complete(ctx, account.id, provider, **answer)
    found = await audit_entries.summaries(ctx, account.id)
    assert [why in detail for action, _, detail in found if action == "sso.refused"] == [True]


async def test_whoever_tries_codes_is_slowed(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    await sso_setup.connect(ctx, account.id, provider)
    visitor = sso_setup.visitor(ctx)
    begun = await sso_flow.begin(visitor, account.id, next_path="/")
    answer = {**provider.authorize(begun.url), "code": "guessed"}
    refusals: set[type[errors.PostroadError]] = set()
    for _ in range(1_000):
        try:
            await sso_flow.complete(visitor, account.id, cookie=begun.cookie, answer=answer)
        except errors.PostroadError as refusal:
            refusals.add(type(refusal))
        if errors.RateLimited in refusals:
            break
    assert refusals == {errors.InvalidRequest, errors.RateLimited}
    assert provider.asked("/token") < 1_000
    # Whoever reads the audit log sees it, and everything else.
    told = [action for action, _, _ in await audit_entries.summaries(ctx, account.id)]
    assert told.count("sso.refused") == login_rules.AUDITED.free


async def test_the_secret_is_sent_as_the_provider_wants_it(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    provider.metadata = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    await sso_setup.connect(ctx, account.id, provider)
    with pytest.raises(errors.InvalidRequest, match="401: invalid_client"):
        await sso_setup.complete(ctx, account.id, provider)
    sent = dict(parse.parse_qsl(provider.server.requests[-1].body.decode()))
    assert (sent["client_id"], sent["client_secret"]) == (oidc_provider.CLIENT_ID, oidc_provider.SECRET)


async def test_logging_out_leads_to_the_provider_that_offers_it(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    await sso_setup.connect(ctx, account.id, provider)
    login = await sso_setup.enter(ctx, account.id, provider)
    expected = (
        f"{provider.issuer}/end?client_id=postroad&post_logout_redirect_uri=https%3A%2F%2Fmail.example.org%2Flogin"
    )
    assert await sso_flow.log_out_url(ctx, login.id) == expected
    assert await sso_flow.log_out_url(ctx, "lgn_" + "0" * 28) is None
