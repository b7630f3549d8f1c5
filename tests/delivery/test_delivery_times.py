"""The time from when mail is queued until it is delivered is counted by provider, with the results themselves."""

from postroad.storage.mail import mail_counts
from tests.delivery import engine_harness

GOOGLE = engine_harness.zones_of({"mx.google.com": "127.0.0.1"})


async def test_the_time_of_what_is_delivered_is_counted_and_that_of_the_rest_is_not(database_url: str) -> None:
    answers = iter(["451 4.3.0 later", "250 2.1.5 ok", "550 5.1.1 no such user"])
    async with engine_harness.delivering_to(database_url, {"RCPT": lambda _: next(answers)}, zones=GOOGLE) as (
        _,
        harness,
    ):
        delayed = await harness.send()
        await harness.settle(delayed)
        harness.pass_seconds(600)
        assert (await harness.settle(delayed, attempts=2)).standing == ("delivered", 2, 250)
        assert (await harness.settle(await harness.send())).standing == ("bounced", 1, 550)
        async with harness.ctx.store.scanning() as tx:
            found = {one.provider: one for one in await mail_counts.hourly_by_provider(tx, from_hour=0)}
        google = found["google"]
        assert (google.delivered, google.deferred, google.bounced) == (1, 1, 1)
        assert google.mean_delivery_time == 600_000_000
        assert found[""].mean_delivery_time is None
