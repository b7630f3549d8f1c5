"""Processes of the version before work on today's schema, side by side with today's.

`previous_version/` has the statements of that version, recorded with their arguments and results by
`statement_recorder.py`. Replayed here, they must have the same results, and leave what today's code can continue.
"""

import functools
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from postroad import config
from postroad.model.bounces import disposition
from postroad.roles import composition
from postroad.services import context
from postroad.services.accounts import closure, credits, registry
from postroad.services.dkim import domain_keys
from postroad.services.maintenance import consistency
from postroad.storage import migrations
from tests import accepted_mail
from tests.contexts import SECRET_KEY, Clock
from tests.services import claimed_mail
from tests.storage import statement_recorder

FOLDER = Path(__file__).parent / "previous_version"


@functools.cache
def recorded(dialect: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{dialect}.json").read_text(encoding="utf-8"))
    return found


async def replay(ctx: context.Context) -> None:
    """Run the statements of the version before, transaction by transaction, and compare what they return."""
    made = recorded(ctx.store.dialect)
    statements: dict[str, str] = ctx.store._statements  # type: ignore[attr-defined]
    statements |= {f"previous.{name}": text for name, text in made["statements"].items()}
    # It cannot create users any more, since an email is unique in its account only (CHANGELOG.md). The one that it logs
    # in was created before the schema changed.
    insert = statements["previous.users.insert"]
    statements["previous.users.insert"] = insert.replace(
        "ON CONFLICT (email_key)", "ON CONFLICT (account_id, email_key)"
    )
    assert statements["previous.users.insert"] != insert
    for _, group in itertools.groupby(made["calls"], key=lambda call: call["tx"]):
        async with ctx.store.transaction() as tx:
            for call in group:
                prefix = "" if call["method"] == "add_rows" else "previous."
                arguments = [statement_recorder.decoded(argument) for argument in call["arguments"]]
                result = await getattr(tx, call["method"])(prefix + call["query"], *arguments)
                assert in_order(statement_recorder.encoded(result)) == in_order(call["result"]), call["query"]


def in_order(result: object) -> object:
    """Rows have no particular order unless a query says so."""
    return sorted(result, key=repr) if isinstance(result, list) else result


@pytest.fixture
def settings(database_url: str) -> config.Settings:
    return config.load(
        environment={},
        overrides={
            "database": {"url": database_url},
            "security": {"secret_key": SECRET_KEY},
            "warmup": {"enabled": False},
        },
    )


async def test_the_version_before_works_on_this_schema_and_this_version_goes_on(settings: config.Settings) -> None:
    async with composition.open_context(settings, clock=Clock()) as ctx:
        await replay(ctx)
        assert (await consistency.run(ctx)).findings == []
        shop, bank = await registry.page(ctx, "", 9)
        assert (shop.name, shop.state, shop.available, shop.reserved) == ("Shop", "active", 18, 1)
        assert (shop.closed_at, shop.unlimited, shop.has_uncharged) == (None, 0, 0)
        # What it encrypted opens, and what is new works beside it.
        assert await domain_keys.signing_key(ctx, shop.id, accepted_mail.DOMAIN) is not None
        await credits.set_unlimited(ctx, shop.id, unlimited=True)
        await accepted_mail.accept(ctx, shop.id, to=("d@example.net",))
        (claim,) = await claimed_mail.claim_all(ctx, claimed_mail.WORKER)
        await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claim, disposition.Verdict.BOUNCED)])
        assert (await registry.find(ctx, shop.id)).reserved == 1  # a deferred recipient of the version before
        await closure.close(ctx, bank.id)
        assert (await consistency.run(ctx)).findings == []


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_the_recorded_version_is_one_that_this_schema_is_compatible_with(dialect: str) -> None:
    version = recorded(dialect)["version"]
    newer = [one for one in migrations.known(dialect) if one.version > version]
    assert [one.name for one in newer if one.compatible_from is None or one.compatible_from > version] == []
    used = {call["query"] for call in recorded(dialect)["calls"]}
    for query in ("messages.insert", "queue.insert", "ledger.insert", "recipients.record", "attempts.insert"):
        assert query in used
    assert len(used) > 80
