"""Single sign-on of the installation: its provider answers as it should, and the account of newcomers exists."""

from collections.abc import Sequence

from postroad import config
from postroad.services.checks import findings, subject
from postroad.services.sso import connections, providers
from postroad.services.webhooks import client as webhook_client
from postroad.storage import accounts


async def single_sign_on(given: subject.Subject) -> Sequence[findings.Finding]:
    """The provider can be reached from this host."""
    if not given.settings.sso.issuer:
        return [findings.skipped("sso.issuer is empty")]
    found = await _provider(given.settings)
    if found is None and not await _has_account(given):
        found = findings.error("sso.account names an account that does not exist", "set the id of an account")
    return [found or findings.ok(f"{given.settings.sso.issuer} can be used")]


async def _provider(settings: config.Settings) -> findings.Finding | None:
    guarded = webhook_client.WebhookClient(settings)
    asked = providers.Providers(settings, guarded)
    try:
        await asked.check(connections.installation(settings))
    except (providers.ProviderError, config.ConfigError) as problem:
        return findings.error(f"single sign-on does not work: {problem}", "check [sso] and that the provider runs")
    finally:
        await asked.close()
        await guarded.close()
    return None


async def _has_account(given: subject.Subject) -> bool:
    if given.store is None or not given.settings.sso.account:
        return True
    async with given.store.reading() as tx:
        account = await accounts.by_id(tx, given.settings.sso.account)
    return account is not None and account.closed_at is None
