"""Quotas: nobody gets more than theirs, not even all at once; operators and the service are not bound."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping

import msgspec
import pytest

from postroad import config, context, errors
from postroad.model.people import callers
from postroad.services import usage_limits
from postroad.services.domains import domain_registry as domains
from postroad.services.people import api_keys, credentials
from postroad.services.people import users as account_users
from postroad.services.suppressions import suppression_csv
from postroad.services.suppressions import suppression_list as suppressions
from postroad.services.templates import templates
from postroad.storage.mail import suppressions as stored_suppressions
from postroad.storage.people import accounts as stored_accounts
from postroad.storage.people import users
from tests.services.audit_entries import as_user

Create = Callable[[context.Context, str, int], Awaitable[object]]
SetQuota = Callable[[str, int], None]


async def new_key(ctx: context.Context, account_id: str, number: int) -> str:
    scopes = frozenset({callers.Permission.SEND})
    key, _ = await api_keys.create(ctx, account_id, credential_id=None, name=f"key {number}", scopes=scopes)
    return key.id


async def new_credential(ctx: context.Context, account_id: str, number: int) -> str:
    return (await credentials.create(ctx, account_id, f"credential {number}"))[0].id


CREATE: Mapping[str, Create] = {
    "domains": lambda ctx, account_id, number: domains.add(ctx, account_id, f"d{number}.example", verified=False),
    "credentials": new_credential,
    "api_keys": new_key,
    "templates": lambda ctx, account_id, number: templates.put(
        ctx, account_id, f"t{number}", subject="Hello", text="Hi", html=None
    ),
    "users": lambda ctx, account_id, number: account_users.invite(
        ctx, account_id, email=f"u{number}@example.com", role=callers.Role.DEVELOPER
    ),
}


@pytest.fixture
def set_quota(ctx: context.Context, monkeypatch: pytest.MonkeyPatch) -> SetQuota:
    """Changes a quota of every account, be it a setting or a constant."""

    def change(kind: str, quota: int) -> None:
        if kind in usage_limits.QUOTAS:
            monkeypatch.setattr(usage_limits, "QUOTAS", {**usage_limits.QUOTAS, kind: quota})
        else:
            quotas = msgspec.structs.replace(ctx.settings.quotas, **{kind: quota})
            msgspec.structs.force_setattr(ctx.settings, "quotas", quotas)

    return change


@pytest.fixture
async def person(ctx: context.Context, account: stored_accounts.Account, owner: users.User) -> context.Context:
    """The owner of an account with a credential."""
    await credentials.create(ctx, account.id, "main")
    return as_user(ctx, owner)


@pytest.mark.parametrize("kind", CREATE)
async def test_parallel_requests_do_not_pass_a_quota_together(
    person: context.Context, account: stored_accounts.Account, kind: str, set_quota: SetQuota
) -> None:
    # Of credentials and users there is one already.
    quota = 3 if kind in {"credentials", "users"} else 2
    set_quota(kind, quota)
    results = await asyncio.gather(
        *(CREATE[kind](person, account.id, number) for number in range(6)), return_exceptions=True
    )
    refused = [result for result in results if isinstance(result, BaseException)]
    verb = "revoke" if kind in {"credentials", "api_keys"} else "remove"
    beginning = f"the quota of this account is {quota} {usage_limits.QUOTA_NAMES[kind][1]}; {verb} one"
    assert {(type(result), str(result)[: len(beginning)]) for result in refused} == {(errors.Conflict, beginning)}
    assert len(refused) == 4


async def test_a_quota_binds_api_keys_too(
    ctx: context.Context, account: stored_accounts.Account, set_quota: SetQuota
) -> None:
    await credentials.create(ctx, account.id, "main")
    who = callers.Caller(
        account_id=account.id,
        credential_id=None,
        scheme=callers.Scheme.API_KEY,
        permissions=frozenset(),
        key=callers.ApiKey("key_1", "deploy", callers.SCOPES),
    )
    set_quota("templates", 1)
    limited = context.acting_as(ctx, who, request_id="", client_address="")
    await CREATE["templates"](limited, account.id, 1)
    with pytest.raises(errors.Conflict, match=r"^the quota of this account is 1 template;"):
        await CREATE["templates"](limited, account.id, 2)


@pytest.mark.parametrize("kind", CREATE)
async def test_an_operator_is_not_limited(
    ctx: context.Context,
    person: context.Context,
    account: stored_accounts.Account,
    kind: str,
    set_quota: SetQuota,
) -> None:
    set_quota(kind, 1)
    for number in range(3):
        await CREATE[kind](ctx, account.id, number)


async def test_a_template_can_be_saved_again_at_the_quota(
    person: context.Context, account: stored_accounts.Account, set_quota: SetQuota
) -> None:
    set_quota("templates", 1)
    for _ in range(2):
        await CREATE["templates"](person, account.id, 1)
    await templates.remove(person, account.id, "t1")
    await CREATE["templates"](person, account.id, 2)


async def test_ten_revoked_credentials_or_keys_count_as_one(
    person: context.Context, account: stored_accounts.Account, set_quota: SetQuota
) -> None:
    set_quota("credentials", 2)
    set_quota("api_keys", 1)
    for number in range(10):
        await api_keys.revoke(person, account.id, await new_key(person, account.id, number))
        await credentials.revoke(person, account.id, await new_credential(person, account.id, number))
    for create in (new_key, new_credential):
        with pytest.raises(errors.Conflict):
            await create(person, account.id, 11)


async def test_a_full_suppression_list_takes_no_more_from_users_and_all_from_the_service(
    ctx: context.Context,
    person: context.Context,
    account: stored_accounts.Account,
    set_quota: SetQuota,
) -> None:
    own = stored_suppressions.Source.ACCOUNT
    set_quota("suppressions", 2)
    await suppression_csv.import_csv(person, account.id, b"a@example.net\nb@example.net\n")
    with pytest.raises(errors.Conflict, match="2 suppressed addresses"):
        await suppressions.add(person, account.id, "c@example.net", reason="asked", source=own)
    with pytest.raises(errors.Conflict, match="2 suppressed addresses"):
        await suppression_csv.import_csv(person, account.id, b"c@example.net\n")
    await suppressions.add(ctx, account.id, "c@example.net", reason="asked", source=own)
    assert len(await suppressions.page(ctx, account.id, after="", limit=9)) == 3


def test_every_quota_has_a_name_and_a_generous_default(settings: config.Settings) -> None:
    assert {**usage_limits.QUOTAS, **msgspec.structs.asdict(settings.quotas)} == {
        "domains": 500,
        "credentials": 500,
        "api_keys": 1_000,
        "templates": 1_000,
        "webhooks": 10,
        "inbound_routes": 1_000,
        "users": 200,
        "suppressions": 1_000_000,
        "stored_megabytes": 10_240,  # mail/accept/test_queue_limit.py
    }
    assert usage_limits.QUOTA_NAMES.keys() == {*usage_limits.QUOTAS, "domains", "users"}


# Costly work takes turns, within an account and within a process.

KIND = usage_limits.WorkLimit("digs", per_account=2, per_process=3, retry_seconds=7)
OTHER = usage_limits.WorkLimit("climbs", per_account=1, per_process=1, retry_seconds=7)


def test_an_account_has_its_number_of_turns_and_gets_them_back(ctx: context.Context) -> None:
    with usage_limits.acquire(ctx, KIND, "acc_a"):
        with usage_limits.acquire(ctx, KIND, "acc_a"):
            with (
                pytest.raises(errors.RateLimited, match="digs: at most 2") as refused,
                usage_limits.acquire(ctx, KIND, "acc_a"),
            ):
                pass
            assert refused.value.retry_after == 7
        with usage_limits.acquire(ctx, KIND, "acc_a"):
            pass
    assert not ctx.work_in_progress


def test_all_accounts_together_have_a_bound_for_each_kind(ctx: context.Context) -> None:
    with (
        usage_limits.acquire(ctx, KIND, "acc_a"),
        usage_limits.acquire(ctx, KIND, "acc_a"),
        usage_limits.acquire(ctx, KIND, "acc_b"),
    ):
        with pytest.raises(errors.RateLimited, match="digs: too many"), usage_limits.acquire(ctx, KIND, "acc_c"):
            pass
        with usage_limits.acquire(ctx, OTHER, "acc_c"):
            pass


def test_accounts_that_use_all_they_may_leave_something_for_the_next(ctx: context.Context) -> None:
    downloads = usage_limits.WorkLimit("downloads", per_account=8, per_process=32, retry_seconds=5)
    with contextlib.ExitStack() as taken:
        for number in range(6):
            with contextlib.suppress(errors.RateLimited):
                for _ in range(8):
                    taken.enter_context(usage_limits.acquire(ctx, downloads, f"acc_{number}"))
        taken.enter_context(usage_limits.acquire(ctx, downloads, "acc_next"))
    assert not ctx.work_in_progress
