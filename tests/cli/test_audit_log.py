"""`postroad audit-log`."""

import dataclasses

from postroad import context
from postroad.services import audit_log
from postroad.services.accounts import account_registry as accounts
from tests.cli.cli_runner import Installation


def test_what_an_operator_did_is_shown_newest_first(installation: Installation) -> None:
    installation.text("user", "create", "jo@example.com")
    installation.text("credits", "add", "--amount", "50", "--note", "a gift")
    lines = installation.text("audit-log").splitlines()
    assert lines[0].split() == ["TIME", "ACTOR", "CLIENT", "ACTION"]
    assert [line.split(maxsplit=3)[1:] for line in lines[1:]] == [
        ["operator", "-", "added 50 credits (a gift)"],
        ["operator", "-", "created the user jo@example.com (as owner)"],
        ["operator", "-", "created the account Shop"],
    ]


def test_the_address_of_a_client_is_shown(installation: Installation) -> None:
    async def note(ctx: context.Context) -> None:
        (account,) = await accounts.page(ctx, "", 1)
        actor = dataclasses.replace(ctx.actor, client_address="203.0.113.9")
        async with ctx.store.transaction() as tx:
            there = dataclasses.replace(ctx, actor=actor)
            await audit_log.write(there, tx, account.id, "domain.key_created", "example.com")

    installation.ask(note)
    assert installation.text("audit-log").splitlines()[1].split()[1:3] == ["operator", "203.0.113.9"]


def test_programs_get_the_members_of_the_api(installation: Installation) -> None:
    (entry,) = installation.json("audit-log")["entries"]
    assert entry.pop("id").startswith("aud_")
    assert entry.pop("account_id").startswith("acc_")
    assert entry.pop("at").endswith("Z")
    assert entry == {
        "actor": {"kind": "operator", "id": None, "name": "operator"},
        "action": "account.created",
        "subject": "Shop",
        "detail": "",
        "text": "created the account Shop",
        "request_id": None,
        "client_address": None,
    }


def test_only_so_many_entries_of_the_named_account_are_shown(installation: Installation) -> None:
    installation.text("account", "create", "--name", "Other")
    installation.text("credits", "add", "--account", "Other", "--amount", "1")
    (entry,) = installation.json("audit-log", "--account", "Other", "--limit", "1")["entries"]
    assert entry["action"] == "credits.added"
    assert "more than one account" in installation.refusal("audit-log")
    for limit in ("0", "1001", "x"):
        assert installation.run("audit-log", "--account", "Shop", "--limit", limit).exit_code == 2
