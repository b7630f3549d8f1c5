"""The documents and keys of providers: what is believed, what is kept, and where requests may go."""

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from postroad import config
from postroad.model.people import login_rules
from postroad.network.http import guarded_client as webhook_client
from postroad.services.people import sso_providers
from tests import oidc_provider, webhook_server
from tests.contexts import SECRET_KEY

NOW = 1_800_000_000
DISCOVERY = "/.well-known/openid-configuration"


class Monotonic:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def steady() -> Monotonic:
    return Monotonic()


@pytest_asyncio.fixture
async def found(steady: Monotonic) -> AsyncIterator[sso_providers.Providers]:
    settings = config.load(environment={}, overrides={"security": {"installation_key": SECRET_KEY}})
    guarded = webhook_client.WebhookClient(settings)
    opened = sso_providers.Providers(settings, guarded, clock=steady)
    yield opened
    await opened.close()
    await guarded.close()


@pytest_asyncio.fixture
async def provider() -> AsyncIterator[oidc_provider.Provider]:
    async with oidc_provider.running(now=lambda: NOW) as running:
        yield running


def registration(issuer: str, *, is_trusted: bool = True) -> login_rules.Registration:
    return login_rules.Registration(issuer, oidc_provider.CLIENT_ID, oidc_provider.SECRET, is_trusted=is_trusted)


async def verify(found: sso_providers.Providers, provider: oidc_provider.Provider) -> login_rules.Person:
    text = provider.id_token(nonce="n")
    return await found.verify(registration(provider.issuer), text, nonce="n", groups_claim="groups", now=NOW)


async def test_documents_are_fetched_once_an_hour(
    found: sso_providers.Providers, provider: oidc_provider.Provider, steady: Monotonic
) -> None:
    for _ in range(3):
        await verify(found, provider)
    assert (provider.asked(DISCOVERY), provider.asked("/keys")) == (1, 1)
    steady.now += sso_providers.DOCUMENT_SECONDS
    await verify(found, provider)
    assert (provider.asked(DISCOVERY), provider.asked("/keys")) == (2, 2)


async def test_a_rotated_key_is_fetched_when_it_is_first_seen_and_at_most_once_a_minute(
    found: sso_providers.Providers, provider: oidc_provider.Provider, steady: Monotonic
) -> None:
    await verify(found, provider)
    provider.key, provider.header = oidc_provider.OTHER_RSA_KEY, {"kid": "two"}
    provider.keys = [*provider.keys, oidc_provider.jwk(oidc_provider.OTHER_RSA_KEY, kid="two")]
    assert (await verify(found, provider)).subject == oidc_provider.SUBJECT
    assert provider.asked("/keys") == 2
    provider.header = {"kid": "three"}
    for _ in range(3):
        with pytest.raises(sso_providers.UnknownKey):
            await verify(found, provider)
    assert provider.asked("/keys") == 2, "within the minute"
    steady.now += sso_providers.KEYS_AGAIN_SECONDS
    for _ in range(3):
        with pytest.raises(sso_providers.UnknownKey):
            await verify(found, provider)
    assert provider.asked("/keys") == 3


async def test_keys_that_cannot_be_fetched_again_stay_for_those_who_need_them(
    found: sso_providers.Providers, provider: oidc_provider.Provider
) -> None:
    await verify(found, provider)
    provider.documents["/keys"] = webhook_server.ok(500)
    provider.header = {"kid": "two"}
    with pytest.raises(sso_providers.ProviderError, match="500"):
        await verify(found, provider)
    provider.header = {"kid": "one"}
    assert (await verify(found, provider)).subject == oidc_provider.SUBJECT
    assert provider.asked("/keys") == 2


async def test_an_old_key_no_longer_counts_after_its_rotation(
    found: sso_providers.Providers, provider: oidc_provider.Provider, steady: Monotonic
) -> None:
    await verify(found, provider)
    provider.keys = [oidc_provider.jwk(oidc_provider.OTHER_RSA_KEY, kid="two")]
    steady.now += sso_providers.DOCUMENT_SECONDS
    with pytest.raises(sso_providers.UnknownKey):
        await verify(found, provider)


@pytest.mark.parametrize(
    "metadata, why",
    [
        ({"issuer": "https://login.other.example"}, r"login.other.example"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "not an HTTPS URL"),
    ],
)
async def test_a_document_of_another_issuer_or_with_an_endpoint_that_is_no_web_address_is_refused(
    found: sso_providers.Providers, provider: oidc_provider.Provider, metadata: dict[str, str], why: str
) -> None:
    provider.metadata = metadata
    with pytest.raises(sso_providers.ProviderError, match=why):
        await found.metadata(registration(provider.issuer))


@pytest.mark.parametrize(
    "answer, why",
    [
        (webhook_server.ok(200, b"x" * (sso_providers.MAX_BYTES + 1)), "larger than"),
        (webhook_server.ok(200, b"not json"), "not what OpenID Connect prescribes"),
        (webhook_server.ok(200, b"[" * 100_000), "not what OpenID Connect prescribes"),
        (webhook_server.ok(200, b'{"issuer": 7}'), "not what OpenID Connect prescribes"),
        (webhook_server.ok(404, b"{}"), "404"),
        (webhook_server.ok(302, b"", "Location: http://127.0.0.1:1/"), "302"),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{}", "no length"),
        (b"", "closed"),
    ],
)
async def test_a_document_that_is_huge_broken_or_elsewhere_is_refused(
    found: sso_providers.Providers, provider: oidc_provider.Provider, answer: bytes, why: str
) -> None:
    provider.documents[DISCOVERY] = answer
    with pytest.raises(sso_providers.ProviderError, match=why):
        await found.metadata(registration(provider.issuer))


async def test_a_silent_provider_is_left_alone_after_its_time(
    found: sso_providers.Providers, provider: oidc_provider.Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sso_providers, "RESPONSE_SECONDS", 0.05)
    provider.documents[DISCOVERY] = None
    with pytest.raises(sso_providers.ProviderError, match=r"within 0.05 seconds"):
        await found.metadata(registration(provider.issuer))


async def test_a_failure_is_kept_for_a_moment_so_that_nobody_can_make_us_ask(
    found: sso_providers.Providers, provider: oidc_provider.Provider, steady: Monotonic
) -> None:
    provider.documents[DISCOVERY] = webhook_server.ok(500)
    for _ in range(3):
        with pytest.raises(sso_providers.ProviderError, match="500"):
            await found.metadata(registration(provider.issuer))
    assert provider.asked(DISCOVERY) == 1
    provider.documents.clear()
    steady.now += sso_providers.FAILURE_SECONDS
    assert (await found.metadata(registration(provider.issuer))).issuer == provider.issuer


async def test_the_provider_of_an_account_reaches_no_private_address(
    found: sso_providers.Providers, provider: oidc_provider.Provider
) -> None:
    """Neither directly, nor by a document that names one."""
    for host in ("127.0.0.1", "10.0.0.1", "[::1]", "localhost", "169.254.169.254"):
        with pytest.raises(sso_providers.ProviderError, match="public"):
            await found.metadata(registration(f"https://{host}", is_trusted=False))
    with pytest.raises(sso_providers.ProviderError, match="HTTPS"):
        await found.metadata(registration(provider.issuer, is_trusted=False))
    assert provider.server.connections == 0


async def test_what_a_document_names_is_checked_like_the_issuer(provider: oidc_provider.Provider) -> None:
    """Its own address is allowed here; that of the keys and of the token endpoint is not."""
    async with webhook_server.running() as server:
        settings = config.load(
            environment={},
            overrides={
                "security": {"installation_key": SECRET_KEY},
                "webhooks": {"allow_private": [webhook_server.PUBLIC], "ca_file": server.ca_file},
            },
        )
        guarded = webhook_client.WebhookClient(settings)
        found = sso_providers.Providers(settings, guarded)
        issuer = f"https://{webhook_server.PUBLIC}:{server.port}"
        document = {
            "issuer": issuer,
            "authorization_endpoint": f"{issuer}/authorize",
            "token_endpoint": f"https://127.0.0.1:{provider.server.port}/token",
            "jwks_uri": f"https://127.0.0.1:{provider.server.port}/keys",
        }
        server.answer = webhook_server.ok(200, json.dumps(document).encode())
        ours = registration(issuer, is_trusted=False)
        try:
            with pytest.raises(sso_providers.ProviderError, match=r"key set.*loopback"):
                await found.verify(ours, provider.id_token(nonce="n"), nonce="n", groups_claim="groups", now=NOW)
            with pytest.raises(sso_providers.ProviderError, match=r"token endpoint.*loopback"):
                await found.exchange(ours, code="c", verifier="v", redirect_uri="https://x.example/")
        finally:
            await found.close()
            await guarded.close()
    assert provider.server.connections == 0


async def test_an_error_of_the_token_endpoint_is_told_without_secrets(
    found: sso_providers.Providers, provider: oidc_provider.Provider
) -> None:
    wrong = login_rules.Registration(provider.issuer, oidc_provider.CLIENT_ID, "another secret", is_trusted=True)
    with pytest.raises(sso_providers.ProviderError, match="400: invalid_grant") as refusal:
        await found.exchange(wrong, code="no such code", verifier="v", redirect_uri="https://x.example/")
    assert "another secret" not in str(refusal.value)
    provider.documents["/token"] = webhook_server.ok(400, b'{"error": "\\u0007 bell"}')
    with pytest.raises(sso_providers.ProviderError, match=r"responded with 400$"):
        await found.exchange(wrong, code="c", verifier="v", redirect_uri="https://x.example/")
    assert "another secret" not in repr(wrong)
