"""The audit log: every change leaves its entry, with its actor and in its transaction; nothing else does."""

from collections.abc import Awaitable, Callable

import pytest

from postroad import config, context, errors
from postroad.model.people import callers
from postroad.model.units import identifiers
from postroad.services import audit_log
from postroad.services.accounts import account_registry as accounts
from postroad.services.accounts import credits as services_credits
from postroad.services.domains import domain_registry as domains
from postroad.services.messages import queue_inspection
from postroad.services.operations import cleanup
from postroad.services.people import api_keys, authentication, credentials, logins
from postroad.services.people import users as account_users
from postroad.services.suppressions import suppression_csv
from postroad.services.suppressions import suppression_list as suppressions
from postroad.services.templates import templates
from postroad.services.webhooks import delivery_log, endpoints
from postroad.storage.mail import domains as stored_domains
from postroad.storage.mail import queue_views
from postroad.storage.mail import suppressions as stored_suppressions
from postroad.storage.people import accounts as stored_accounts
from postroad.storage.people import users
from tests import accepted_mail, queue_steps, webhook_rows
from tests.contexts import PASSWORD, Clock
from tests.services.audit_entries import ADDRESS, REQUEST, as_user, entries, summaries

Work = Callable[[context.Context, str], Awaitable[None]]


@pytest.fixture
def settings(database_url: str) -> config.Settings:
    return webhook_rows.settings(database_url)


async def new_words(ctx: context.Context, account_id: str, work: Work) -> list[tuple[str, str, str]]:
    """The entries that some work added to the audit log."""
    before = {entry.id for entry in await entries(ctx, account_id)}
    await work(ctx, account_id)
    now = [entry for entry in await entries(ctx, account_id) if entry.id not in before]
    return sorted((entry.action, entry.subject, entry.detail) for entry in now)


async def use_credentials(ctx: context.Context, account_id: str) -> None:
    credential, password = await credentials.create(ctx, account_id, "Shop")
    scopes = frozenset({callers.Permission.SEND})
    key, secret = await api_keys.create(ctx, account_id, credential_id=None, name="Till", scopes=scopes)
    await api_keys.revoke(ctx, account_id, key.id)
    await credentials.revoke(ctx, account_id, credential.id)
    reported = " ".join(f"{entry.subject} {entry.detail}" for entry in await entries(ctx, account_id))
    assert password not in reported
    assert secret not in reported


async def use_domains(ctx: context.Context, account_id: str) -> None:
    domain = await domains.add(ctx, account_id, "Shop.Example", verified=False)
    for _ in range(2):  # the second time it is so already
        await domains.verify(ctx, account_id, domain.id, by=stored_domains.DNS)
    for warm in (True, False):
        await domains.set_warm(ctx, account_id, domain.id, warm=warm)
    await domains.remove(ctx, account_id, domain.id)
    await domains.add(ctx, account_id, "vouched.example", verified=True)


async def use_templates(ctx: context.Context, account_id: str) -> None:
    await templates.put(ctx, account_id, "welcome", subject="The subject", text="x", html=None)
    await templates.remove(ctx, account_id, "welcome")


async def use_suppressions(ctx: context.Context, account_id: str) -> None:
    for _ in range(2):  # the second time it is on the list already
        await suppressions.add(
            ctx, account_id, "Jo@example.net", reason="asked", source=stored_suppressions.Source.ACCOUNT
        )
    await suppressions.remove(ctx, account_id, "jo@example.net")
    await suppression_csv.import_csv(ctx, account_id, b"email\r\na@example.net\r\nb@example.net\r\na@example.net\r\n")


async def use_account(ctx: context.Context, account_id: str) -> None:
    await accounts.suspend(ctx, account_id, "spam")
    for _ in range(2):  # the second time it is not suspended
        await accounts.resume(ctx, account_id)
    await services_credits.add(ctx, account_id, 50, "a gift")


async def use_webhook(ctx: context.Context, account_id: str) -> None:
    await endpoints.save(ctx, account_id, url="https://127.0.0.2:9/secret-path?token=secret", wanted=["email.bounced"])
    await endpoints.rotate(ctx, account_id)
    await endpoints.rotate(ctx, account_id, overlap_hours=2)
    await endpoints.save(ctx, account_id, url="https://127.0.0.2:9/secret-path", enabled=False)
    await endpoints.remove(ctx, account_id)


HOOK = "127.0.0.2"
WORK: dict[Work, list[tuple[str, str, str]]] = {
    use_domains: [
        ("domain.added", "shop.example", ""),
        ("domain.added", "vouched.example", "verified by the operator"),
        ("domain.not_warm", "shop.example", ""),
        ("domain.removed", "shop.example", ""),
        ("domain.verified", "shop.example", "by its DKIM record in DNS"),
        ("domain.warm", "shop.example", ""),
    ],
    use_templates: [("template.removed", "welcome", ""), ("template.saved", "welcome", "")],
    use_suppressions: [
        ("suppression.added", "jo@example.net", ""),
        ("suppression.imported", "2 addresses", ""),
        ("suppression.removed", "jo@example.net", ""),
    ],
    use_account: [
        ("account.resumed", "Shop", ""),
        ("account.suspended", "Shop", "spam"),
        ("credits.added", "50", "a gift"),
    ],
    use_webhook: [
        ("webhook.removed", HOOK, ""),
        ("webhook.saved", HOOK, "disabled"),
        ("webhook.saved", HOOK, "email.bounced"),
        ("webhook.secret_rotated", HOOK, ""),
        ("webhook.secret_rotated", HOOK, "the old one is valid for 2 more hours"),
    ],
}


@pytest.mark.parametrize("work", WORK, ids=lambda work: work.__name__)
async def test_a_change_leaves_its_entry_and_what_is_so_already_leaves_none(
    ctx: context.Context, account: stored_accounts.Account, work: Work
) -> None:
    assert await new_words(ctx, account.id, work) == WORK[work]


async def test_credentials_and_keys_are_logged_without_their_secrets(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    words = await new_words(ctx, account.id, use_credentials)
    (listed,) = await credentials.of_account(ctx, account.id)
    assert words == [
        ("api_key.created", "Till", "send"),
        ("api_key.revoked", "Till", ""),
        ("credential.created", "Shop", listed.username),
        ("credential.revoked", "Shop", listed.username),
    ]


async def test_a_delivery_that_is_sent_again_is_in_the_audit_log(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    await endpoints.save(ctx, account.id, url=webhook_rows.URL)
    delivery = await webhook_rows.put_ended(ctx, account.id)
    await delivery_log.replay(ctx, account.id, delivery.id)
    assert ("webhook.replayed", delivery.id, delivery.event_type) in await summaries(ctx, account.id)


async def test_a_new_account_begins_with_its_making(ctx: context.Context, account: stored_accounts.Account) -> None:
    (entry,) = await entries(ctx, account.id)
    assert (entry.action, entry.subject, entry.actor_kind, entry.actor) == (
        "account.created",
        "Shop",
        "operator",
        "operator",
    )
    assert (entry.user_id, entry.request_id, entry.client_address) == (None, "", "")


async def test_an_entry_has_the_name_of_the_user_at_that_time(
    ctx: context.Context, account: stored_accounts.Account, owner: users.User
) -> None:
    other, _ = await account_users.create(
        ctx, account.id, email="other@example.com", password=PASSWORD, role=callers.Role.OWNER
    )
    await templates.put(as_user(ctx, other), account.id, "welcome", subject="x", text="x", html=None)
    await account_users.remove(as_user(ctx, owner), account.id, other.id)
    by_action = {entry.action: entry for entry in await entries(ctx, account.id)}
    saved = by_action["template.saved"]
    assert (saved.actor_kind, saved.user_id, saved.actor) == ("person", other.id, "other@example.com")
    assert (saved.request_id, saved.client_address) == (REQUEST, ADDRESS)
    removed = by_action["user.removed"]
    assert (removed.actor, removed.subject) == ("owner@example.com", "other@example.com")


async def test_a_change_that_is_undone_leaves_no_entry(ctx: context.Context, account: stored_accounts.Account) -> None:
    before = await summaries(ctx, account.id)

    async def broken() -> None:
        async with ctx.store.transaction() as tx:
            await audit_log.write(ctx, tx, account.id, "template.saved", "welcome")
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        await broken()
    with pytest.raises(errors.NotFound):
        await templates.remove(ctx, account.id, "nothing-here")
    assert await summaries(ctx, account.id) == before


async def test_an_unknown_action_is_a_bug_and_is_loud(ctx: context.Context, account: stored_accounts.Account) -> None:
    with pytest.raises(LookupError, match=r"domain\.eaten"):
        async with ctx.store.transaction() as tx:
            await audit_log.write(ctx, tx, account.id, "domain.eaten", "example.com")


async def test_hostile_words_become_one_short_line(ctx: context.Context, account: stored_accounts.Account) -> None:
    async with ctx.store.transaction() as tx:
        await audit_log.write(ctx, tx, account.id, "credits.added", "a\r\n\0\u202eb\ud800{subject}", "x" * 999)
    (entry,) = [entry for entry in await entries(ctx, account.id) if entry.action == "credits.added"]
    assert entry.subject == "a    b {subject}"
    assert entry.detail == "x" * 200
    assert audit_log.text(entry) == f"added a    b {{subject}} credits ({entry.detail})"


@pytest.mark.parametrize(
    "action, subject, detail, expected",
    [
        ("credits.added", "10000", "a gift of 10000", "added 10,000 credits (a gift of 10000)"),
        ("suppression.imported", "1200 addresses", "", "imported 1,200 addresses into the suppression list"),
        ("message.retried", "em_0654", "", "retried em_0654"),
        ("user.invited", "a_b@example.net", "as read_only", "invited a_b@example.net (as read-only)"),
        ("api_key.created", "1234", "send read", "created the API key 1234 (scopes send, read)"),
        ("webhook.saved", "a.example", "email.failed ping", "saved the webhook at a.example (email.failed, ping)"),
    ],
)
async def test_names_and_numbers_are_logged_as_people_write_them(
    ctx: context.Context, account: stored_accounts.Account, action: str, subject: str, detail: str, expected: str
) -> None:
    async with ctx.store.transaction() as tx:
        await audit_log.write(ctx, tx, account.id, action, subject, detail)
    assert expected in [audit_log.text(entry) for entry in await entries(ctx, account.id)]


async def test_a_page_is_newest_first_and_of_one_account(
    ctx: context.Context, account: stored_accounts.Account, clock: Clock
) -> None:
    other = await accounts.create(ctx, "Other")
    for alias in ("one", "two", "three"):
        clock.pass_seconds(1)
        await templates.put(ctx, account.id, alias, subject="x", text="x", html=None)
    first = await audit_log.page(ctx, account.id, before=None, limit=2)
    rest = await audit_log.page(ctx, account.id, before=first[-1].id, limit=9)
    assert [entry.subject for entry in first + rest] == ["three", "two", "one", "Shop"]
    assert [entry.subject for entry in await entries(ctx, other.id)] == ["Other"]
    for before in ("", "x", "aud_", ctx.new_id(identifiers.USER, now=1)):
        with pytest.raises(errors.InvalidRequest, match="before"):
            await audit_log.page(ctx, account.id, before=before, limit=9)


async def test_a_queue_command_is_one_entry_for_each_account(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    other = await accounts.create(ctx, "Other")
    idle = await accounts.create(ctx, "Idle")
    for place, domain, count in ((account, "mine.example", 2), (other, "other.example", 1)):
        await accepted_mail.allow_sending(ctx, place.id, domain=domain)
        for _ in range(count):
            await accepted_mail.accept(ctx, place.id, sender=f"shop@{domain}")
            (key,) = await queue_steps.claim(ctx, place.id)
            await queue_steps.defer(ctx, key)
    everything = [queue_views.Filter()]
    assert (await queue_inspection.retry(ctx, everything)).changed == 3
    assert (await queue_inspection.retry(ctx, everything)).changed == 0
    assert (await queue_inspection.cancel(ctx, everything)).changed == 3
    about_mail = [
        [words for words in await summaries(ctx, one.id) if "message." in words[0]] for one in (account, other)
    ]
    assert about_mail == [
        [("message.canceled", "2 recipients", ""), ("message.retried", "2 recipients", "")],
        [("message.canceled", "1 recipient", ""), ("message.retried", "1 recipient", "")],
    ]
    assert [words[0] for words in await summaries(ctx, idle.id)] == ["account.created"]


async def test_accepting_mail_writes_nothing(ctx: context.Context, shop: str) -> None:
    before = await summaries(ctx, shop)
    await accepted_mail.accept(ctx, shop)
    assert await summaries(ctx, shop) == before


async def test_a_login_is_recorded_with_its_address_and_so_is_the_end_of_its_session(
    ctx: context.Context, account: stored_accounts.Account, owner: users.User
) -> None:
    session = await logins.log_in(ctx, owner.email, PASSWORD, client_address=ADDRESS, request_id="req_1")
    who = await authentication.authenticate(ctx, f"Bearer {session.token}", client_address=ADDRESS)
    await logins.log_out(ctx, who)
    found = [entry for entry in await entries(ctx, account.id) if not entry.action.endswith(".created")]
    assert {entry.action for entry in found} == {"user.logged_in", "user.token_revoked"}
    (entry,) = [entry for entry in found if entry.action == "user.logged_in"]
    assert (entry.subject, entry.user_id) == (owner.email, owner.id)
    assert (entry.client_address, entry.request_id) == (ADDRESS, "req_1")
    assert f"{entry.actor} {audit_log.text(entry)}" == "owner@example.com logged in (by password)"


async def test_failed_logins_of_a_user_are_recorded_with_their_addresses_up_to_a_bound(
    ctx: context.Context, account: stored_accounts.Account, owner: users.User
) -> None:
    for number in range(15):
        for email in (owner.email, "nobody@example.com"):
            with pytest.raises(errors.Unauthorized):
                await logins.log_in(ctx, email, "wrong horse", client_address=f"198.18.{number}.1")
    await ctx.access_cache.password_checks.close()  # they are written after the response
    written = [entry for entry in await entries(ctx, account.id) if entry.action == "user.login_failed"]
    assert len(written) == 10
    assert {entry.client_address for entry in written} <= {f"198.18.{number}.1" for number in range(15)}
    assert {(entry.actor, audit_log.text(entry)) for entry in written} == {
        ("somebody", "failed to log in as owner@example.com")
    }


async def test_old_entries_are_swept_after_the_days_of_the_setting(
    ctx: context.Context, account: stored_accounts.Account, clock: Clock
) -> None:
    clock.pass_seconds(ctx.settings.dashboard.audit_log_days * 24 * 3600)
    assert (await cleanup.sweep(ctx)).audit_log == 0
    clock.pass_seconds(1)
    assert (await cleanup.sweep(ctx)).audit_log == 1
    assert await entries(ctx, account.id) == []


def test_every_action_is_a_sentence_about_its_subject() -> None:
    for action, sentence in audit_log.ACTIONS.items():
        kind, _, done = action.partition(".")
        assert kind.isidentifier(), action
        assert done.isidentifier(), action
        assert "{subject}" in sentence or action in {"user.confirmed", "user.joined", "user.logged_in"}
        assert sentence.format(subject="x")[0].islower()
