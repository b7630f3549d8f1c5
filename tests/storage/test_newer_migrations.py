"""Migrations of newer versions: what a store of the version before has comes through them."""

import dataclasses

import msgspec
import pytest

from postroad.model import bounce_guard, key_limits
from postroad.protocol.reports import tls_report
from postroad.storage import (
    accounts,
    api_keys,
    attempts,
    bounce_guard_days,
    certificates,
    consistency,
    dkim_keys,
    domain_checks,
    domains,
    holds,
    hourly_counts,
    idempotency,
    known_networks,
    login_failures,
    logins,
    message_search,
    messages,
    mta_sts_policies,
    operator_jobs,
    password_links,
    processes,
    provider_overrides,
    queue,
    queue_views,
    recipients,
    search_conditions,
    second_factors,
    sessions,
    source_counts,
    source_states,
    sqlite,
    sso_connections,
    sso_identities,
    tls_reports,
    users,
    webhooks,
)
from postroad.storage.store import ConstraintViolated, Store
from tests.storage import samples
from tests.storage.schema_upgrade import SchemaUpgrade


async def test_policies_of_destinations_are_stored_from_the_version_before_on(
    empty: Store, upgrade: SchemaUpgrade
) -> None:
    await upgrade.begin("tls_policies")
    async with empty.transaction() as tx:
        await samples.add_old_account(tx, credits=10)
    await upgrade.finish()
    row = mta_sts_policies.StoredPolicy("example.org", "1", "version: STSv1", 1, 9)
    async with empty.transaction() as tx:
        await mta_sts_policies.put(tx, row)
        assert await mta_sts_policies.find(tx, "example.org", now=8) == row
        result = tls_report.Result(tls_report.Policy(tls_report.PolicyType.NONE, "example.org"))
        await tls_reports.add(tx, 7, {"example.org": {result: 2}}, due_at={"example.org": 9})
        (report,) = await tls_reports.claim_due(tx, now=9, until=10, limit=5)
        assert await tls_reports.sessions(tx, report) == {result: 2}
        assert await consistency.findings(tx) == []


async def test_a_database_without_counters_of_logins_gets_them_and_keeps_its_users(
    empty: Store, upgrade: SchemaUpgrade
) -> None:
    await upgrade.begin("logins")
    async with empty.transaction() as tx:
        await samples.add_old_account(tx, credits=10)
        await samples.add_old_user(tx)
    await upgrade.finish()
    async with empty.transaction() as tx:
        assert [one.id for one in await users.by_email(tx, "jo@example.com")] == ["usr_1"]
        assert not await known_networks.is_known(tx, "usr_1", "192.0.2.1")
        assert await login_failures.lock(tx, [b"counter"]) == {}


async def test_keys_and_checks_come_through_the_rotation(empty: Store, upgrade: SchemaUpgrade) -> None:
    await upgrade.begin("dkim_rotation")
    add_key = """
        INSERT INTO dkim_keys (account_id, domain_id, selector, private_key, public_key, created_at)
        VALUES ('acc_1', 'dom_1', '{selector}', {value}, {value}, 7)"""
    value = "x'00ff'" if empty.dialect == "sqlite" else "'\\x00ff'"
    async with empty.transaction() as tx:
        await tx.run_script(add_key.format(selector="pr1", value=value))
        await tx.run_script("INSERT INTO domain_checks VALUES ('acc_1', 'dom_1', 'dkim', 'ok', 'key found', '', 7)")
    await upgrade.finish()
    async with empty.transaction() as tx:
        await tx.run_script(add_key.format(selector="pr2", value=value))  # by a process of the version before
        one, two = await dkim_keys.of_domain(tx, "acc_1", "dom_1")
        assert one == dkim_keys.DkimKey("acc_1", "dom_1", "pr1", b"\0\xff", b"\0\xff", 7, "rsa", "current", None, None)
        assert (two.algorithm, two.status) == ("rsa", "current")
        checked = domain_checks.Check("acc_1", "dom_1", "dkim", "ok", "key found", "", 7)
        assert await domain_checks.of_domain(tx, "acc_1", "dom_1") == {"dkim": checked}
        added = domain_checks.Check("acc_1", "dom_1", "dkim_next", "missing", "add it", "", 8)
        await domain_checks.put(tx, [added])
        assert await domain_checks.of_domain(tx, "acc_1", "dom_1") == {"dkim": checked, "dkim_next": added}
    for change in (
        "UPDATE domain_checks SET state = 'another'",
        "UPDATE dkim_keys SET status = 'another'",
        "UPDATE dkim_keys SET algorithm = 'another'",
    ):
        with pytest.raises(ConstraintViolated):
            async with empty.transaction() as tx:
                await tx.run_script(change)


async def test_counts_of_the_bounce_guard_go_on_where_mailboxes_were_not_known(
    empty: Store, upgrade: SchemaUpgrade
) -> None:
    await upgrade.begin("guard_mailboxes")
    async with empty.transaction() as tx:
        await bounce_guard_days.add(tx, 5, {"acc_1": bounce_guard.Counts(3, 2, 1)})
    await upgrade.finish()
    async with empty.transaction() as tx:
        assert await bounce_guard_days.sums(tx, ["acc_1"], after_day=4) == {"acc_1": bounce_guard.Counts(3, 2, 1)}
        assert await bounce_guard_days.count_report(tx, "acc_1", "a@example.net", day=5, after_day=-2)


async def test_a_queue_from_before_holds_is_ready_and_can_be_held(empty: Store, upgrade: SchemaUpgrade) -> None:
    await upgrade.begin("holds")
    async with empty.transaction() as tx:
        await samples.add_account(tx)
        await tx.run_script(samples.old_message(empty, "em_1"))
        await recipients.insert(tx, [samples.recipient("em_1")])
        await tx.run_script(samples.OLD_QUEUE)
    await upgrade.finish()
    async with empty.transaction() as tx:
        assert list(await queue_views.counts(tx, queue_views.Filter())) == ["ready"]
        assert await holds.put(tx, holds.Hold("acc_1", "", "a test", 2))
        assert list(await queue_views.counts(tx, queue_views.Filter())) == ["held"]


async def test_mail_from_before_the_subdomain_keeps_the_return_path_of_its_sender(
    empty: Store, upgrade: SchemaUpgrade
) -> None:
    await upgrade.begin("return_path")
    async with empty.transaction() as tx:
        await tx.run_script(
            "INSERT INTO domains (id, account_id, name, created_at) VALUES ('dom_1', 'acc_1', 'a.b', 1)"
        )
        await tx.run_script(samples.old_message(empty, "em_1"))
    await upgrade.finish()
    async with empty.transaction() as tx:
        # A neighbour of the version before still writes.
        await tx.run_script(samples.old_message(empty, "em_2"))
        found = await messages.outgoing(tx, [("acc_1", "em_1"), ("acc_1", "em_2")])
        assert [one.return_path_domain for one in found] == ["", ""]
        assert [one.return_path_domain for one in await domains.of_account(tx, "acc_1")] == [""]


async def test_mail_from_before_it_had_times_is_sent_at_once_and_new_mail_has_them(
    empty: Store, upgrade: SchemaUpgrade
) -> None:
    await upgrade.begin("message_options")
    async with empty.transaction() as tx:
        await samples.add_account(tx)
        await tx.run_script(samples.old_message(empty, "em_1"))
        await recipients.insert(tx, [samples.recipient("em_1")])
        await tx.run_script(samples.OLD_QUEUE)
    await upgrade.finish()
    async with empty.transaction() as tx:
        # A neighbour of the version before still writes.
        await tx.run_script(samples.old_message(empty, "em_2"))
        await tx.run_script(samples.OLD_QUEUE.replace("em_1", "em_2"))
        await messages.insert(tx, [samples.message("em_3", metadata='{"a":"b"}', send_at=5, expires_at=7, is_test=1)])
        three = samples.recipient("em_3")
        await recipients.insert(tx, [three])
        await queue.insert(tx, [three], {"em_3": 4}, now=2, schedules={"em_3": queue.Schedule(5, 7)})
        wanted = queue.ClaimRequest(queue.queue_key_of("example.org", "acc_1"), 9)
        assert [one.expires_at for one in await queue.claim(tx, [wanted], lease_until=99, worker="w")] == [None, None]
        assert await queue.promote(tx, now=5, limit=9) == 1
        assert [one.expires_at for one in await queue.claim(tx, [wanted], lease_until=99, worker="w")] == [7]
        await tx.run_script("UPDATE recipients SET status = 'canceled' WHERE message_id = 'em_1'")
        await tx.run_script("UPDATE recipients SET status = 'expired' WHERE message_id = 'em_3'")
    with pytest.raises(ConstraintViolated):
        async with empty.transaction() as tx:
            await tx.run_script("UPDATE recipients SET status = 'lost' WHERE message_id = 'em_1'")


async def test_an_account_gets_more_endpoints_and_a_neighbour_of_the_version_before_sees_the_first(
    empty: Store, upgrade: SchemaUpgrade
) -> None:
    await upgrade.begin("webhook_endpoints")
    add = """
        INSERT INTO webhooks (id, account_id, url, events, enabled, secret_hint, created_at, updated_at)
        VALUES ('whk_1', 'acc_1', 'https://one.example/', 'email.failed', 1, 'whsec_1', 5, 6)"""
    samples.teach(
        empty,
        one_of_account="SELECT id FROM webhooks WHERE account_id = 'acc_1' AND removed_at IS NULL",
        enabled="SELECT id FROM webhooks WHERE id <> '' AND removed_at IS NULL AND enabled = 1",
    )
    async with empty.transaction() as tx:
        await tx.run_script(add)
    await upgrade.finish()
    first = webhooks.Webhook("whk_1", "acc_1", "https://one.example/", "email.failed", 1, "whsec_1", 5, 6)
    async with empty.transaction() as tx:
        assert await webhooks.of_account(tx, "acc_1") == [first]
        second = msgspec.structs.replace(first, id="whk_2", is_first=0, version=2, tags="a\nb c", mode="test")
        third = msgspec.structs.replace(first, id="whk_3", is_first=0)
        for one in (second, third):
            await webhooks.insert(tx, one)
        assert await webhooks.of_account(tx, "acc_1") == [first, second, third]
        for query in ("test.one_of_account", "test.enabled"):
            assert [tuple(row) for row in await tx.fetch(query)] == [("whk_1",)]
        # It removes the first, and makes another.
        await tx.run_script("UPDATE webhooks SET removed_at = 9 WHERE id = 'whk_1'")
        assert await webhooks.first_of(tx, "acc_1") is None
        await tx.run_script(add.replace("whk_1", "whk_4"))
        assert [one.id for one in await webhooks.of_account(tx, "acc_1")] == ["whk_4", "whk_2", "whk_3"]
    for change in ("SET version = 3", "SET mode = 'another'", "SET standard_signature = 2"):
        for table in ("webhooks", "additional_webhooks"):
            with pytest.raises(ConstraintViolated):
                async with empty.transaction() as tx:
                    await tx.run_script(f"UPDATE {table} {change}")


async def test_mail_from_before_metadata_is_listed_and_new_mail_is_found_by_it(
    empty: Store, upgrade: SchemaUpgrade
) -> None:
    await upgrade.begin("message_metadata")
    async with empty.transaction() as tx:
        await samples.add_account(tx)
        await messages.insert(tx, [samples.message("em_1")])
    await upgrade.finish()
    async with empty.transaction() as tx:
        await messages.insert(tx, [samples.message("em_2", metadata='{"a":"b:c"}')])
        every = search_conditions.Filter(after="", before="em_~")
        found = await message_search.page(tx, "acc_1", every, limit=9)
        assert [(one.id, one.metadata) for one in found] == [("em_2", None), ("em_1", None)]
        one = await messages.by_id(tx, "acc_1", "em_2")
        assert one is not None
        assert one.metadata == '{"a":"b:c"}'
        entry = search_conditions.Condition(search_conditions.Kind.METADATA, "a:b:c")
        chosen = dataclasses.replace(every, clauses=((entry,),))
        plan = await message_search.plan(tx, "acc_1", chosen, limit=9)
        assert [one.id for one in await message_search.page(tx, "acc_1", chosen, plan, limit=9)] == ["em_2"]


async def test_an_account_from_before_names_no_events_until_an_endpoint_does(
    empty: Store, upgrade: SchemaUpgrade
) -> None:
    await upgrade.begin("named_events")
    endpoint = webhooks.Webhook("whk_1", "acc_1", "https://one.example/", "email.failed", 1, "whsec_1", 5, 6)
    async with empty.transaction() as tx:
        await accounts.insert(tx, "acc_1", name="Shop", now=1)
        await tx.run_script("""
            INSERT INTO webhooks (id, account_id, url, events, enabled, secret_hint, created_at, updated_at)
            VALUES ('whk_1', 'acc_1', 'https://one.example/', 'email.failed', 1, 'whsec_1', 5, 6)""")
    await upgrade.finish()
    async with empty.transaction() as tx:
        assert (await accounts.lock(tx, ["acc_1"]))["acc_1"].named_events == ""
        await webhooks.update(tx, msgspec.structs.replace(endpoint, events="email.failed credits.low"))
        assert (await accounts.lock(tx, ["acc_1"]))["acc_1"].named_events == "email.failed credits.low"


async def test_mail_from_before_urgency_is_not_urgent_and_new_mail_may_be(empty: Store, upgrade: SchemaUpgrade) -> None:
    await upgrade.begin("urgent_mail")
    async with empty.transaction() as tx:
        await tx.run_script(samples.OLD_QUEUE)
    await upgrade.finish()
    async with empty.transaction() as tx:
        # A neighbour of the version before still writes.
        await tx.run_script(samples.OLD_QUEUE.replace("em_1", "em_2"))
        assert await queue.urgent_keys(tx, after="", limit=9) == []
        schedules = {"em_3": queue.Schedule(expires_at=7)}
        await queue.insert(tx, [samples.recipient("em_3")], {"em_3": 4}, now=2, schedules=schedules)
        assert await queue.urgent_keys(tx, after="", limit=9) == ["example.org acc_1"]
        expired = await queue.claim_expired(tx, now=7, limit=9, lease_until=99, worker="w")
        assert [one.claim.message_id for one in expired] == ["em_3"]


async def test_a_key_from_before_batches_has_no_response_of_its_own_and_a_new_one_may_have(
    empty: Store, upgrade: SchemaUpgrade
) -> None:
    await upgrade.begin("batch_responses")
    blob = "x'00'" if empty.dialect == "sqlite" else "'\\x00'"
    old_key = f"INSERT INTO idempotency_keys VALUES ('cred_1', '{{}}', 'acc_1', {blob}, 'em_1', 99)"  # noqa: S608
    async with empty.transaction() as tx:
        await tx.run_script(old_key.format("old"))
    await upgrade.finish()
    columns = "(credential_id, key, account_id, body_hash, message_id, expires_at)"
    async with empty.transaction() as tx:
        # A neighbour of the version before still writes.
        await tx.run_script(old_key.format("neighbour").replace("keys VALUES", f"keys {columns} VALUES"))
        await idempotency.insert(tx, [idempotency.NewKey("cred_1", "new", "acc_1", b"h", "em_2", 99, b"response")])
        found = await idempotency.find(tx, [("cred_1", key) for key in ("old", "neighbour", "new")], now=1)
    assert {key: stored.response for (_, key), stored in found.items()} == {
        "old": None,
        "neighbour": None,
        "new": b"response",
    }


async def test_certificates_are_added_to_a_store_of_the_version_before(empty: Store, upgrade: SchemaUpgrade) -> None:
    await upgrade.begin("certificates")
    await upgrade.finish()
    async with empty.transaction() as tx:
        claimed = await certificates.claim(tx, certificates.Key("https://ca.example", "a"), due_by=5, now=5, until=9)
    assert claimed == certificates.StoredCertificate("https://ca.example", "a", "", b"", 0, 0, 9, 9, 1, "")


async def test_test_messages_are_listed_in_a_store_of_the_version_before(empty: Store, upgrade: SchemaUpgrade) -> None:
    await upgrade.begin("test_messages")
    async with empty.transaction() as tx:
        await samples.add_account(tx)
        await messages.insert(tx, [samples.message("em_1"), samples.message("em_2", is_test=1)])
    await upgrade.finish()
    async with empty.transaction() as tx:
        chosen = search_conditions.Filter(after="", before="em_~", is_test=1)
        plan = await message_search.plan(tx, "acc_1", chosen, limit=9)
        listed = await message_search.page(tx, "acc_1", chosen, plan, limit=9)
    assert [one.id for one in listed] == ["em_2"]


async def test_api_keys_from_before_they_had_limits_have_none(empty: Store, upgrade: SchemaUpgrade) -> None:
    await upgrade.begin("api_key_limits")
    octets = {"sqlite": "BLOB", "postgres": "BYTEA"}[empty.dialect]

    def old_key(key_id: str) -> str:
        """The statement of the version before."""
        return f"""
            INSERT INTO api_keys (id, account_id, credential_id, name, key_hash, hint, scopes, created_at)
            VALUES ('{key_id}', 'acc_1', 'cred_1', 'shop', CAST('{key_id}' AS {octets}), '…', 'send', 1)
        """  # noqa: S608 - of constants

    async with empty.transaction() as tx:
        await samples.add_account(tx)
        await tx.run_script(old_key("key_1"))
    await upgrade.finish()
    async with empty.transaction() as tx:
        # A neighbour of the version before still writes.
        await tx.run_script(old_key("key_2"))
        found = await api_keys.of_account(tx, "acc_1")
    assert [(one.id, one.limits, one.usage) for one in found] == [
        ("key_1", key_limits.NO_LIMITS, None),
        ("key_2", key_limits.NO_LIMITS, None),
    ]


async def test_users_and_keys_from_before_there_were_operators_are_none(empty: Store, upgrade: SchemaUpgrade) -> None:
    await upgrade.begin("operators")
    octets = {"sqlite": "BLOB", "postgres": "BYTEA"}[empty.dialect]

    def old_rows(number: int) -> str:
        """The statements of the version before."""
        return f"""
            INSERT INTO users (id, account_id, email, email_key, password_hash, role, tokens_valid_from, created_at)
            VALUES ('usr_{number}', 'acc_1', 'u{number}@example.org', 'u{number}@example.org', '-', 'owner', 1, 1);
            INSERT INTO api_keys (id, account_id, credential_id, name, key_hash, hint, scopes, created_at)
            VALUES ('key_{number}', 'acc_1', 'cred_1', 'shop', CAST('{number}' AS {octets}), '…', '*', 1);
        """  # noqa: S608 - of constants

    async with empty.transaction() as tx:
        await samples.add_account(tx)
        await tx.run_script(old_rows(1))
    await upgrade.finish()
    async with empty.transaction() as tx:
        # A neighbour of the version before still writes.
        await tx.run_script(old_rows(2))
        assert await users.operators(tx) == []
        assert [one.created_by for one in await api_keys.of_account(tx, "acc_1")] == [None, None]
        await users.set_operator(tx, "usr_2", since=7)
        assert [(one.id, one.operator_since) for one in await users.operators(tx)] == [("usr_2", 7)]


async def test_accounts_from_before_there_were_limits_have_none(empty: Store, upgrade: SchemaUpgrade) -> None:
    await upgrade.begin("account_limits")
    old_account = """
        INSERT INTO accounts (id, name, status, suspended_reason, available, reserved, created_at)
        VALUES ('acc_{0}', 'Shop {0}', 'active', NULL, 0, 0, 1)"""
    async with empty.transaction() as tx:
        await tx.run_script(old_account.format(1))
    await upgrade.finish()
    async with empty.transaction() as tx:
        # A neighbour of the version before still writes.
        await tx.run_script(old_account.format(2))
        await accounts.set_limits(tx, "acc_2", request_rate=5, recipients_per_day=None)
        found = await accounts.lock(tx, ["acc_1", "acc_2"])
    assert [(one.request_rate, one.recipients_per_day) for one in found.values()] == [(None, None), (5, None)]


async def test_changes_of_provider_queues_and_jobs_are_stored_from_the_version_before_on(
    empty: Store, upgrade: SchemaUpgrade
) -> None:
    await upgrade.begin("operator_console")
    old_process = """
        INSERT INTO processes (name, host, process_id, roles, version, started_at, seen_at)
        VALUES ('mail:{0}', 'mail', {0}, 'api', '0.1', 1, 5)"""
    async with empty.transaction() as tx:
        await tx.run_script(old_process.format(1))
    await upgrade.finish()
    override = provider_overrides.Override("google", 1, None, 5, None, "usr_1", 7, "they asked", 9, "slower", None)
    job = operator_jobs.Job("job_1", "queue.retry", "all mail", "running", 0, None, "null", "usr_1", 7, 7)
    async with empty.transaction() as tx:
        await provider_overrides.put(tx, override)
        await operator_jobs.insert(tx, job)
        assert await provider_overrides.listed(tx) == [override]
        assert await operator_jobs.latest(tx, limit=2) == [job]
        # A neighbour of the version before still writes.
        await tx.run_script(old_process.format(2))
        assert [one.rates for one in await processes.seen_since(tx, 0)] == ["", ""]


async def test_a_pause_and_limits_of_the_version_before_have_the_same_reason_and_end(
    empty: Store, upgrade: SchemaUpgrade
) -> None:
    await upgrade.begin("provider_reasons")
    old_change = """
        INSERT INTO provider_overrides (name, paused, connections, reason, set_by, set_at, until)
        VALUES ('google', 1, 2, '{0}', 'usr_1', {1}, 90)
        ON CONFLICT (name) DO UPDATE SET reason = excluded.reason, set_at = excluded.set_at, until = excluded.until"""
    old = provider_overrides.Override("google", 1, 2, None, None, "usr_1", 7, "asked", 90, "asked", 90)
    async with empty.transaction() as tx:
        await tx.run_script(old_change.format("asked", 7))
    await upgrade.finish()
    async with empty.transaction() as tx:
        assert await provider_overrides.listed(tx) == [old]
        changed = msgspec.structs.replace(old, set_at=8, pause_reason="blocked", pause_until=30)
        await provider_overrides.put(tx, changed)
        assert await provider_overrides.listed(tx) == [changed]
        # The later end is that of the whole row, so a neighbour of the version before removes nothing too early.
        assert await provider_overrides.sweep(tx, before=90) == 0
        # Such a neighbour changes both.
        await tx.run_script(old_change.format("theirs", 9))
        (found,) = await provider_overrides.listed(tx)
        assert (found.pause_reason, found.pause_until, found.limits_reason) == ("theirs", 90, "theirs")
        assert await provider_overrides.sweep(tx, before=91) == 1


async def test_results_of_the_version_before_have_no_delivery_time(empty: Store, upgrade: SchemaUpgrade) -> None:
    await upgrade.begin("provider_reasons")
    old_count = """
        INSERT INTO hourly_counts
            (account_id, hour, provider, messages, recipients, delivered, bounced, failed, deferred)
        VALUES ('acc_{0}', 5, 'google', 0, 0, 1, 0, 0, 0)"""
    async with empty.transaction() as tx:
        await tx.run_script(old_count.format(1))
    await upgrade.finish()
    async with empty.transaction() as tx:
        # A neighbour of the version before still writes.
        await tx.run_script(old_count.format(2))
        new = hourly_counts.CountIncrement(
            account_id="acc_1", hour=5, provider="google", delivered=2, delivery_time=8_000_000
        )
        await hourly_counts.add(tx, [new])
        (found,) = await hourly_counts.by_provider(tx, from_hour=5)
    assert (found.delivered, found.delivery_time, found.mean_delivery_time) == (4, 8_000_000, 2_000_000)


async def test_attempts_of_the_version_before_name_no_source_address_and_none_has_a_state(
    empty: Store, upgrade: SchemaUpgrade
) -> None:
    await upgrade.begin("sources")
    old_attempt = """
        INSERT INTO attempts (account_id, message_id, recipient_id, started_at, duration, provider_queue, host, address,
            tls, stage, verdict, reason, enhanced_code, response, in_doubt)
        VALUES ('acc_1', 'em_1', 'rcp_{0}', {0}, 5, 'google', '', '', '', 'connect', 'retry', '', '', '', 0)"""
    async with empty.transaction() as tx:
        await tx.run_script(old_attempt.format(1))
    await upgrade.finish()
    async with empty.transaction() as tx:
        # A neighbour of the version before still writes.
        await tx.run_script(old_attempt.format(2))
        assert [one.source for one in await attempts.of_message(tx, "acc_1", "em_1")] == ["", ""]
        assert (await source_states.listed(tx), await source_counts.since(tx, 0)) == ([], [])


async def test_whoever_has_joined_before_there_were_logins_has_one_with_their_password(
    empty: Store, upgrade: SchemaUpgrade
) -> None:
    await upgrade.begin("people")
    networks = """
        INSERT INTO known_networks (user_id, network, last_login_at) VALUES ('usr_1', '192.0.2.1', 5);
        INSERT INTO known_networks (user_id, network, last_login_at) VALUES ('cred_1', '192.0.2.2', 5);"""
    async with empty.transaction() as tx:
        await samples.add_account(tx)
        await samples.add_old_user(tx, joined_at=3)
        await samples.add_old_user(tx, 2)
        await tx.run_script("UPDATE users SET operator_since = 4, time_zone = 'Europe/Berlin' WHERE id = 'usr_1'")
        await tx.run_script(networks)
    await upgrade.finish()
    async with empty.transaction() as tx:
        joined, invited = await users.of_account(tx, "acc_1")
        assert joined == users.User(
            "usr_1", "acc_1", "jo@example.com", "owner", 1, None, 1, 3, None, "Europe/Berlin", 4, "lgn_1"
        )
        assert (invited.email, invited.joined_at, invited.login_id) == ("jo2@example.com", None, None)
        assert await logins.by_email(tx, "jo@example.com") == [
            logins.Login("lgn_1", "jo@example.com", "jo@example.com", "hash", 1, 1)
        ]
        assert await logins.by_email(tx, "jo2@example.com") == []
        assert await known_networks.of_owner(tx, "lgn_1") == ["192.0.2.1"]
        # In another account the same address is another user, and there are more roles.
        await users.insert(tx, dataclasses.replace(invited, id="usr_3", account_id="acc_2"), email_key="jo@example.com")
        await users.set_role(tx, "usr_3", "analyst")
        await sessions.insert(tx, samples.session())
        findings = [one for one in await consistency.findings(tx) if "usr_3" not in one.text]
        assert findings == []  # which is of no account
    for change in (
        "UPDATE users SET role = 'another'",
        "UPDATE users SET account_id = 'acc_1', email_key = 'jo@example.com'",
        "UPDATE sessions SET kind = 'another'",
    ):
        with pytest.raises(ConstraintViolated):
            async with empty.transaction() as tx:
                await tx.run_script(change)


async def test_logins_have_second_factors_from_the_version_before_on(empty: Store, upgrade: SchemaUpgrade) -> None:
    await upgrade.begin("second_factors")
    old_link = """
        INSERT INTO password_links (token_hash, account_id, user_id, expires_at, by_operator)
        VALUES (CAST('{0}' AS {1}), 'acc_1', 'usr_{0}', 9, 1)"""
    octets = "BLOB" if isinstance(empty, sqlite.SqliteStore) else "BYTEA"
    async with empty.transaction() as tx:
        await samples.add_account(tx)
        await tx.run_script(old_link.format(1, octets))
    await upgrade.finish()
    async with empty.transaction() as tx:
        # A neighbour of the version before still writes.
        await tx.run_script(old_link.format(2, octets))
        for name in ("1", "2"):
            link = await password_links.find(tx, name.encode())
            assert link == password_links.Link(name.encode(), "acc_1", f"usr_{name}", 9, 1, 0)
        account = await accounts.by_id(tx, "acc_1")
        assert account is not None
        assert account.second_factor_since is None
        assert await second_factors.of_login(tx, "lgn_1") == second_factors.Factors()


async def test_single_sign_on_begins_with_nothing_and_leaves_logins_as_they_are(
    empty: Store, upgrade: SchemaUpgrade
) -> None:
    await upgrade.begin("single_sign_on")
    async with empty.transaction() as tx:
        await logins.insert(tx, logins.Login("lgn_1", "jo@example.com", "jo@example.com", "hash", 1, 1))
    await upgrade.finish()
    async with empty.transaction() as tx:
        assert await sso_connections.by_domain(tx, "example.com") is None
        assert await sso_identities.of_login(tx, "lgn_1") == []
        await logins.remove_unused(tx, "lgn_1")
        assert await logins.by_id(tx, "lgn_1") is None
