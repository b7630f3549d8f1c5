"""The checks run concurrently; one that hangs or fails is a finding and hides no other."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from postroad import context
from postroad.services.operations.checks import findings, table
from postroad.services.people import users as people_users
from postroad.storage.people import users
from tests import oidc_provider, webhook_server
from tests.contexts import Clock
from tests.services.operations.checks import setups
from tests.services.people import authenticator


async def hang(_given: findings.Subject) -> Sequence[findings.Finding]:
    await asyncio.Event().wait()
    raise AssertionError


async def fail(_given: findings.Subject) -> Sequence[findings.Finding]:
    raise ValueError("no such thing as postgresql://jo:secret@db")


async def succeed(_given: findings.Subject) -> Sequence[findings.Finding]:
    return [findings.ok("fine"), findings.warning("not so fine")]


async def test_a_check_that_hangs_or_fails_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "CHECK_SECONDS", 0.01)
    checks = {"hangs": table.Check(hang), "fails": table.Check(fail), "works": table.Check(succeed)}
    monkeypatch.setattr(table, "CHECKS", checks)
    results = await table.run(setups.given())
    assert {one.name: [(each.state.value, each.found) for each in one.findings] for one in results} == {
        "hangs": [("warning", "the check did not finish within 0 seconds")],
        "fails": [("warning", "the check failed: ValueError: no such thing as postgresql://[secret]@db")],
        "works": [("ok", "fine"), ("warning", "not so fine")],
    }
    assert [(one.state.value, one.page) for one in results][2] == (
        "warning",
        "http://127.0.0.1:8025/docs/doctor.md#works",
    )


async def test_the_checks_of_one_host_leave_out_those_of_the_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = {"own": table.Check(succeed), "common": table.Check(fail, table.Scope.INSTALLATION)}
    monkeypatch.setattr(table, "CHECKS", checks)
    assert [one.name for one in await table.run(setups.given(), scopes=[table.Scope.HOST])] == ["own"]


def test_only_what_all_hosts_share_concerns_the_whole_installation() -> None:
    common = [name for name, check in table.CHECKS.items() if check.scope is table.Scope.INSTALLATION]
    assert common == ["roles", "partitions", "extensions", "operators", "return_path"]


# The check of operators: whoever has only a password is counted.

ADVICE = "set security.operator_second_factor = true; they must then set one up when they next log in"


async def test_an_operator_with_only_a_password_is_a_warning(
    ctx: context.Context, owner: users.User, clock: Clock
) -> None:
    given = setups.given(store=ctx.store)
    fine = [("ok", "no operator can log in with a password alone", "")]
    assert await setups.told("operators", given) == fine
    await people_users.add_operator(ctx, owner.email)
    assert await setups.told("operators", given) == [
        ("warning", "operators who can log in with a password alone: 1", ADVICE)
    ]
    await authenticator.set_up(ctx, owner, clock)
    assert await setups.told("operators", given) == fine


@pytest.mark.parametrize("has_store", [True, False])
async def test_nothing_is_counted_where_it_is_required(ctx: context.Context, *, has_store: bool) -> None:
    required = {"security": {"installation_key": "x" * 40, "operator_second_factor": True}}
    given = setups.given(None, required, store=ctx.store if has_store else None)
    assert await setups.told("operators", given) == [("ok", "a second factor is required for operators", "")]


async def test_without_a_database_it_is_skipped() -> None:
    assert await setups.told("operators", setups.given()) == [("skipped", "the database cannot be used", "")]


# The provider of the installation, as `postroad doctor` sees it.


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
