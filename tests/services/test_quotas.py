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
from tests import contexts
from tests.services.audit_entries import as_user

Create = Callable[[context.Context, str, int], Awaitable[object]]


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


def with_quota(ctx: context.Context, kind: str, quota: int) -> context.Context:
    return contexts.with_settings(ctx, "quotas", **{kind: quota})


@pytest.fixture
async def person(ctx: context.Context, account: stored_accounts.Account, owner: users.User) -> context.Context:
    """The owner of an account with a credential."""
    await credentials.create(ctx, account.id, "main")
    return as_user(ctx, owner)


@pytest.mark.parametrize("kind", CREATE)
async def test_parallel_requests_do_not_pass_a_quota_together(
    person: context.Context, account: stored_accounts.Account, kind: str
) -> None:
    # Of credentials and users there is one already.
    quota = 3 if kind in {"credentials", "users"} else 2
    limited = with_quota(person, kind, quota)
    results = await asyncio.gather(
        *(CREATE[kind](limited, account.id, number) for number in range(6)), return_exceptions=True
    )
    refused = [result for result in results if isinstance(result, BaseException)]
    verb = "revoke" if kind in {"credentials", "api_keys"} else "remove"
    beginning = f"the quota of this account is {quota} {usage_limits.QUOTA_NAMES[kind][1]}; {verb} one"
    assert {(type(result), str(result)[: len(beginning)]) for result in refused} == {(errors.Conflict, beginning)}
    assert len(refused) == 4


async def test_a_quota_binds_api_keys_too(ctx: context.Context, account: stored_accounts.Account) -> None:
    await credentials.create(ctx, account.id, "main")
    who = callers.Caller(
        account_id=account.id,
        credential_id=None,
        scheme=callers.Scheme.API_KEY,
        permissions=frozenset(),
        key=callers.ApiKey("key_1", "deploy", callers.SCOPES),
    )
    limited = with_quota(context.acting_as(ctx, who, request_id="", client_address=""), "templates", 1)
    await CREATE["templates"](limited, account.id, 1)
    with pytest.raises(errors.Conflict, match=r"^the quota of this account is 1 template;"):
        await CREATE["templates"](limited, account.id, 2)


@pytest.mark.parametrize("kind", CREATE)
async def test_an_operator_is_not_limited(
    ctx: context.Context, person: context.Context, account: stored_accounts.Account, kind: str
) -> None:
    for number in range(3):
        await CREATE[kind](with_quota(ctx, kind, 1), account.id, number)


async def test_a_template_can_be_saved_again_at_the_quota(
    person: context.Context, account: stored_accounts.Account
) -> None:
    limited = with_quota(person, "templates", 1)
    for _ in range(2):
        await CREATE["templates"](limited, account.id, 1)
    await templates.remove(limited, account.id, "t1")
    await CREATE["templates"](limited, account.id, 2)


async def test_ten_revoked_credentials_or_keys_count_as_one(
    person: context.Context, account: stored_accounts.Account
) -> None:
    limited = with_quota(with_quota(person, "credentials", 2), "api_keys", 1)
    for number in range(10):
        await api_keys.revoke(limited, account.id, await new_key(limited, account.id, number))
        await credentials.revoke(limited, account.id, await new_credential(limited, account.id, number))
    for create in (new_key, new_credential):
        with pytest.raises(errors.Conflict):
            await create(limited, account.id, 11)


async def test_a_full_suppression_list_takes_no_more_from_users_and_all_from_the_service(
    ctx: context.Context, person: context.Context, account: stored_accounts.Account
) -> None:
    limited, own = with_quota(person, "suppressions", 2), stored_suppressions.Source.ACCOUNT
    await suppression_csv.import_csv(limited, account.id, b"a@example.net\nb@example.net\n")
    with pytest.raises(errors.Conflict, match="2 suppressed addresses"):
        await suppressions.add(limited, account.id, "c@example.net", reason="asked", source=own)
    with pytest.raises(errors.Conflict, match="2 suppressed addresses"):
        await suppression_csv.import_csv(limited, account.id, b"c@example.net\n")
    await suppressions.add(with_quota(ctx, "suppressions", 2), account.id, "c@example.net", reason="asked", source=own)
    assert len(await suppressions.page(ctx, account.id, after="", limit=9)) == 3


def test_every_quota_has_a_name_and_a_generous_default(settings: config.Settings) -> None:
    assert msgspec.structs.asdict(settings.quotas) == {
        "domains": 500,
        "credentials": 500,
        "api_keys": 1_000,
        "templates": 1_000,
        "webhooks": 10,
        "users": 200,
        "suppressions": 1_000_000,
        "stored_megabytes": 10_240,
        "test_megabytes": 256,
    }
    of_mail = {"stored_megabytes", "test_megabytes"}  # services/acceptance/test_queue_limit.py
    assert usage_limits.QUOTA_NAMES.keys() | of_mail == msgspec.structs.asdict(settings.quotas).keys()


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
