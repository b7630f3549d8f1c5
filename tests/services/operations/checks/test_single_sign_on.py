"""The provider of the installation, as `postroad doctor` sees it."""

from typing import Any

from postroad.services.operations.checks import findings
from tests import oidc_provider, webhook_server
from tests.services.operations.checks import setups


def given(issuer: str, **more: Any) -> findings.Subject:
    return setups.given(None, {"sso": {"issuer": issuer, "client_id": "postroad", **more}})


async def told(seen: findings.Subject) -> list[tuple[str, str, str]]:
    return list(await setups.told("single_sign_on", seen))


async def test_without_a_provider_there_is_nothing_to_check() -> None:
    assert await told(setups.given()) == [("skipped", "sso.issuer is empty", "")]


async def test_a_provider_that_answers_is_fine_and_one_without_usable_keys_is_not() -> None:
    async with oidc_provider.running() as provider:
        assert await told(given(provider.issuer)) == [("ok", f"{provider.issuer} can be used", "")]
        remedy = "check [sso] and that the provider runs"
        provider.keys = [{"kty": "oct", "kid": "one", "k": "AAAA"}]
        problem = "the provider has no key that can verify its ID tokens"
        expected = ("error", f"single sign-on does not work: {problem}", remedy)
        assert await told(given(provider.issuer)) == [expected]
        provider.documents["/.well-known/openid-configuration"] = webhook_server.ok(503)
        ((state, sentence, _),) = await told(given(provider.issuer))
        assert (state, "responded with 503" in sentence) == ("error", True)


async def test_a_secret_that_cannot_be_read_is_told() -> None:
    ((state, sentence, _),) = await told(given("http://127.0.0.1:9", client_secret_file="/nowhere/secret"))
    assert (state, "sso.client_secret_file" in sentence) == ("error", True)
