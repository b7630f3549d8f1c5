"""Sender domains are registered by many accounts and proven by one; a change is felt at once."""

import asyncio

import pytest

from postroad import context, errors
from postroad.services.accounts import account_registry as accounts
from postroad.services.domains import domain_registry as domains
from tests import accepted_mail, contexts

NO_NAMES = [
    "",
    " ",
    "localhost",
    "example",
    ".com",
    "example.com.",
    "exa mple.com",
    "a..b",
    "-a.com",
    "a-.com",
    "127.0.0.1",
    "[127.0.0.1]",
    "user@example.com",
    "https://example.com",
    "example.com/x",
    "*.example.com",
    "a_b.com",
    "example.com\n",
    "example.com\0",
    "\u202eexample.com",
    "xn--.com",
    "a" * 64 + ".com",
    "a." * 200 + "com",
    "x" * 100_000 + ".com",
]


async def test_a_domain_is_found_by_every_writing_of_its_name_in_its_account_only(
    ctx: context.Context, account_id: str, clock: contexts.Clock
) -> None:
    made = await domains.add(ctx, account_id, "bücher.example", verified=False)
    assert (made.verified_at, made.created_at) == (None, clock.now)
    for name in ("bücher.example", "BÜCHER.example", "xn--bcher-kva.example"):
        assert await domains.by_name(ctx, account_id, name) == made
    other = await accounts.create(ctx, "Other")
    with pytest.raises(errors.NotFound, match=r"xn--bcher-kva\.example is not registered"):
        await domains.by_name(ctx, other.id, "bücher.example")
    with pytest.raises(errors.InvalidRequest, match=r"^name: "):
        await domains.by_name(ctx, account_id, "bücher")
    listed = [made]
    for name in ("c.example", "a.example"):
        clock.pass_seconds(1)
        listed.append(await domains.add(ctx, account_id, name, verified=False))
    assert await domains.of_account(ctx, account_id, limit=2) == listed[:2]
    assert await domains.of_account(ctx, account_id, after=listed[1].id) == listed[2:]


@pytest.mark.parametrize(
    "written, name",
    [
        ("EXAMPLE.Com", "example.com"),
        (" example.com ", "example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("例え.テスト", "xn--r8jz45g.xn--zckzah"),
    ],
)
async def test_a_name_is_kept_in_lower_case_and_a_labels(
    ctx: context.Context, account_id: str, written: str, name: str
) -> None:
    assert (await domains.add(ctx, account_id, written, verified=False)).name == name
    with pytest.raises(errors.Conflict):
        await domains.add(ctx, account_id, name, verified=False)


async def test_what_is_no_domain_name_is_refused(ctx: context.Context, account_id: str) -> None:
    for name in NO_NAMES:
        with pytest.raises(errors.InvalidRequest, match=r"^name: "):
            await domains.add(ctx, account_id, name, verified=False)
    assert await domains.of_account(ctx, account_id) == []


async def test_a_claim_by_two_accounts_is_settled_by_the_first_proof(
    ctx: context.Context, account_id: str, clock: contexts.Clock
) -> None:
    other = await accounts.create(ctx, "Other")
    mine = await domains.add(ctx, account_id, "example.com", verified=False)
    theirs = await domains.add(ctx, other.id, "example.com", verified=False)
    proven = await domains.verify(ctx, other.id, theirs.id, by="operator")
    assert proven.verified_at == clock.now
    with pytest.raises(errors.Conflict, match="another account"):
        await domains.verify(ctx, account_id, mine.id, by="operator")
    assert (await domains.find(ctx, account_id, mine.id)).verified_at is None
    clock.pass_seconds(60)
    assert await domains.verify(ctx, other.id, theirs.id, by="operator") == proven
    assert await domains.find(ctx, other.id, theirs.id) == proven


@pytest.mark.parametrize("verified", [False, True])
async def test_a_name_that_another_account_has_proven_cannot_be_registered(
    ctx: context.Context, account_id: str, *, verified: bool
) -> None:
    other = await accounts.create(ctx, "Other")
    proven = await domains.add(ctx, other.id, "example.com", verified=True)
    with pytest.raises(errors.Conflict, match="another account"):
        await domains.add(ctx, account_id, "Example.COM", verified=verified)
    await domains.remove(ctx, other.id, proven.id)
    assert (await domains.add(ctx, account_id, "example.com", verified=verified)).account_id == account_id


async def test_accounts_that_prove_one_name_at_the_same_moment_cannot_both_have_it(
    ctx: context.Context, other_process: context.Context
) -> None:
    rivals = [await accounts.create(ctx, f"Rival {number}") for number in range(6)]
    claims = [await domains.add(ctx, rival.id, "example.com", verified=False) for rival in rivals]
    attempts = [
        domains.verify(here, claim.account_id, claim.id, by="operator")
        for here, claim in zip([ctx, other_process] * 3, claims, strict=True)
    ]
    results = await asyncio.gather(*attempts, return_exceptions=True)
    assert sum(isinstance(result, errors.Conflict) for result in results) == 5
    assert sum(not isinstance(result, BaseException) for result in results) == 1


async def test_mail_is_accepted_from_the_moment_of_the_proof_to_the_removal(
    ctx: context.Context, account_id: str
) -> None:
    await accepted_mail.allow_sending(ctx, account_id, domain="first.example")
    with pytest.raises(errors.Forbidden):
        await accepted_mail.accept(ctx, account_id, sender="shop@example.com")
    made = await domains.add(ctx, account_id, "example.com", verified=False)
    with pytest.raises(errors.Forbidden):
        await accepted_mail.accept(ctx, account_id, sender="shop@example.com")
    await domains.verify(ctx, account_id, made.id, by="operator")
    assert await accepted_mail.accept(ctx, account_id, sender="shop@example.com")
    await domains.remove(ctx, account_id, made.id)
    with pytest.raises(errors.Forbidden):
        await accepted_mail.accept(ctx, account_id, sender="shop@example.com")


async def test_a_domain_that_is_unknown_or_of_another_account_does_not_exist(
    ctx: context.Context, account_id: str
) -> None:
    other = await accounts.create(ctx, "Other")
    foreign = await domains.add(ctx, other.id, "example.com", verified=False)
    for domain_id in (foreign.id, "dom_" + "0" * 28, "", "dom_", "dom_" + "0" * 27 + "\0", "em_" + "0" * 28):
        for attempt in (
            domains.find(ctx, account_id, domain_id),
            domains.verify(ctx, account_id, domain_id, by="operator"),
            domains.set_warm(ctx, account_id, domain_id, warm=True),
            domains.remove(ctx, account_id, domain_id),
        ):
            with pytest.raises(errors.NotFound):
                await attempt
    assert await domains.find(ctx, other.id, foreign.id) == foreign
