"""Received mail is kept as long as sent mail: its content first, the rest later."""

from postroad import context
from postroad.model.units import identifiers, times
from postroad.services.operations import cleanup
from postroad.storage.mail import received
from tests import contexts


async def test_content_is_kept_for_thirty_days_and_the_rest_for_ninety(
    ctx: context.Context, account_id: str, clock: contexts.Clock
) -> None:
    mail = received.Received(
        account_id=account_id,
        id=ctx.new_id(identifiers.RECEIVED, now=ctx.clock()),
        route_id="rt_1",
        recipient="a@in.example.com",
        envelope_sender="",
        sender="",
        subject="",
        message_id_field=None,
        email_id=None,
        size=4,
        attachment_count=0,
        authentication="{}",
        spam=None,
        client_address="192.0.2.1",
        fingerprint=b"1",
        received_at=ctx.clock(),
    )
    async with ctx.store.transaction() as tx:
        await received.insert(tx, mail, b"mime")
        await received.add_count(tx, account_id, times.day_of(ctx.clock()), received.ALL_NETWORKS, 4)
    kept = []
    for days in (0, 2, 30, 31, 90, 91):
        clock.now = mail.received_at + days * times.DAY
        swept = await cleanup.sweep(ctx)
        async with ctx.store.reading() as tx:
            row = await received.by_id(tx, account_id, mail.id)
            body = await received.body(tx, account_id, mail.id)
        kept.append((days, row is not None, body is not None, swept.received_counts))
    assert kept == [
        (0, True, True, 0),
        (2, True, True, 1),
        (30, True, True, 0),
        (31, True, False, 0),
        (90, True, False, 0),
        (91, False, False, 0),
    ]
