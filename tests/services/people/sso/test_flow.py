"""From the login page to a provider and back, and every answer that must not count."""

from typing import Any
from urllib import parse

import pytest

from postroad import errors
from postroad.model.people import login_rules
from postroad.services.people import sso_flow
from tests import contexts, oidc_provider
from tests.services import audit_entries
from tests.services.people.sso import sso_setup


async def test_the_request_has_everything_that_protects_the_answer(sso: sso_setup.Sso) -> None:
    await sso.connect(scopes="email groups")
    begun = await sso_flow.begin(sso.visitor, sso.account_id, next_path="/domains", login_hint="jo@corp.example")
    query = dict(parse.parse_qsl(parse.urlsplit(begun.url).query))
    secrets = {name: query.pop(name) for name in ("state", "nonce", "code_challenge")}
    assert query == {
        "response_type": "code",
        "client_id": "postroad",
        "redirect_uri": f"https://mail.example.org/sso/{sso.account_id}/callback",
        "scope": "openid email groups",
        "code_challenge_method": "S256",
        "login_hint": "jo@corp.example",
    }
    assert [len(value) for value in secrets.values()] == [43, 43, 43]
    assert len(set(secrets.values())) == 3
    assert secrets["state"] not in (await sso.begin()).url


async def test_the_domain_of_an_email_decides_and_nothing_else(sso: sso_setup.Sso) -> None:
    for name in ("nobody@corp.example", "Jo@CORP.example"):
        assert await sso_flow.connection_for(sso.ctx, name) == sso.account_id
    for name in ("jo@sub.corp.example", "jo@other.example", "owner@example.com"):
        with pytest.raises(errors.InvalidRequest, match="there is no single sign-on for"):
            await sso_flow.connection_for(sso.ctx, name)
    with pytest.raises(errors.InvalidRequest, match="not an email address"):
        await sso_flow.connection_for(sso.ctx, "corp.example")


async def test_the_provider_of_the_installation_is_for_its_domains_first(sso: sso_setup.Sso) -> None:
    everybody = sso.of_installation()
    assert await sso_flow.connection_for(everybody.ctx, "jo@other.example") == sso_flow.INSTALLATION
    assert await sso_flow.connection_for(everybody.ctx, "jo@corp.example") == sso.account_id
    some = sso.of_installation(email_domains=("corp.example",))
    assert await sso_flow.connection_for(some.ctx, "jo@corp.example") == sso_flow.INSTALLATION
    with pytest.raises(errors.InvalidRequest, match=r"no single sign-on for other.example"):
        await sso_flow.connection_for(some.ctx, "jo@other.example")
    with pytest.raises(errors.InvalidRequest, match="none of the email domains"):
        await some.of(sso.account_id).begin()


async def test_a_whole_attempt_tells_the_person_and_its_code_works_once(sso: sso_setup.Sso) -> None:
    begun = await sso.begin()
    answer = sso.provider.authorize(begun.url)
    person = (await sso.finish(begun.cookie, answer)).person
    assert (person.email, person.subject) == ("jo@corp.example", oidc_provider.SUBJECT)
    with pytest.raises(errors.InvalidRequest, match="400: invalid_grant"):
        await sso.finish(begun.cookie, answer)


@pytest.mark.parametrize(
    "answer, why",
    [
        ({"state": "x" * 43}, "started in another browser"),
        ({"state": None}, "started in another browser"),
        ({"state": ""}, "started in another browser"),
        # RFC 9207: a provider that sends `iss` must send the right one.
        ({"iss": "https://login.other.example"}, "from another provider"),
        ({"iss": None}, "from another provider"),
    ],
    ids=str,
)
async def test_an_answer_to_another_request_or_of_another_provider_is_refused(
    sso: sso_setup.Sso, answer: dict[str, Any], why: str
) -> None:
    with pytest.raises(errors.InvalidRequest, match=why):
        await sso.complete(**answer)
    assert sso.provider.asked("/token") == 0


async def test_a_provider_without_iss_may_leave_it_out_and_not_lie(sso: sso_setup.Sso) -> None:
    sso.provider.sends_iss = False
    assert (await sso.complete()).person.subject == oidc_provider.SUBJECT
    with pytest.raises(errors.InvalidRequest, match="from another provider"):
        await sso.complete(iss="https://login.other.example")


async def test_an_attempt_belongs_to_its_browser_its_time_and_its_connection(
    sso: sso_setup.Sso, clock: contexts.Clock
) -> None:
    begun, other = await sso.begin(), await sso.begin()
    answer = sso.provider.authorize(begun.url)
    for cookie in (None, "", "forged.00", other.cookie, begun.cookie[:-1] + ("0" if begun.cookie[-1] != "0" else "1")):
        with pytest.raises(errors.InvalidRequest, match="started in another browser"):
            await sso.finish(cookie, answer)
    with pytest.raises(errors.InvalidRequest, match="started in another browser"):
        await sso.of(sso_flow.INSTALLATION).finish(begun.cookie, answer)
    clock.pass_seconds(sso_flow.ATTEMPT_SECONDS)
    with pytest.raises(errors.InvalidRequest, match="took too long"):
        await sso.finish(begun.cookie, answer)
    assert sso.provider.asked("/token") == 0


async def test_the_code_and_the_token_of_another_attempt_are_refused(sso: sso_setup.Sso) -> None:
    """Somebody who has stolen a code cannot use it: the verifier is in the browser that began."""
    victim, thief = await sso.begin(), await sso.begin()
    stolen = sso.provider.authorize(victim.url)["code"]
    answer = {**sso.provider.authorize(thief.url), "code": stolen}
    with pytest.raises(errors.InvalidRequest, match="400: invalid_grant"):
        await sso.finish(thief.cookie, answer)
    sso.provider.claims = {"nonce": "of another attempt"}
    with pytest.raises(errors.Forbidden, match="another login"):
        await sso.complete()


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
async def test_a_refusal_of_the_provider_is_told(sso: sso_setup.Sso, answer: dict[str, Any], why: str) -> None:
    with pytest.raises(errors.InvalidRequest, match=why):
        await sso.complete(**answer)
    found = await audit_entries.summaries(sso.ctx, sso.account_id)
    assert [why in detail for action, _, detail in found if action == "sso.refused"] == [True]


async def test_whoever_tries_codes_is_slowed(sso: sso_setup.Sso) -> None:
    begun = await sso.begin()
    answer = {**sso.provider.authorize(begun.url), "code": "guessed"}
    refusals: set[type[errors.PostroadError]] = set()
    for _ in range(1_000):
        try:
            await sso.finish(begun.cookie, answer)
        except errors.PostroadError as refusal:
            refusals.add(type(refusal))
        if errors.RateLimited in refusals:
            break
    assert refusals == {errors.InvalidRequest, errors.RateLimited}
    assert sso.provider.asked("/token") < 1_000
    # Whoever reads the audit log sees it, and everything else.
    told = [action for action, _, _ in await audit_entries.summaries(sso.ctx, sso.account_id)]
    assert told.count("sso.refused") == login_rules.AUDITED.free


async def test_the_secret_is_sent_as_the_provider_wants_it(sso: sso_setup.Sso) -> None:
    sso.provider.metadata = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    with pytest.raises(errors.InvalidRequest, match="401: invalid_client"):
        await sso.complete()
    sent = dict(parse.parse_qsl(sso.provider.server.requests[-1].body.decode()))
    assert (sent["client_id"], sent["client_secret"]) == (oidc_provider.CLIENT_ID, oidc_provider.SECRET)


async def test_logging_out_leads_to_the_provider_that_offers_it(sso: sso_setup.Sso) -> None:
    login = await sso.enter()
    end = f"{sso.provider.issuer}/end"
    expected = f"{end}?client_id=postroad&post_logout_redirect_uri=https%3A%2F%2Fmail.example.org%2Flogin"
    assert await sso_flow.log_out_url(sso.ctx, login.id) == expected
    assert await sso_flow.log_out_url(sso.ctx, "lgn_" + "0" * 28) is None
