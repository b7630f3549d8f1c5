"""What is counted: recipients by their end, attempts by their reason, the time until delivery by provider."""

from postroad.storage.mail import mail_counts
from tests.delivery import engine_harness


async def test_recipients_attempts_and_signatures_are_counted(url: str) -> None:
    def answer(line: str) -> str:
        return "550 5.1.1 nobody here" if "nobody" in line else "250 ok"

    async with engine_harness.delivering_to(url, {"RCPT": answer}, sign=True) as (_, harness):
        await harness.settle(await harness.send("ada@example.net", "nobody@example.net"))
        counted = harness.ctx.metrics
        assert counted.recipients.values["others", "delivered"] == 1
        assert counted.recipients.values["others", "bounced"] == 1
        assert counted.attempts.values["delivered", "", "delivered"] == 1
        (refused,) = [labels for labels in counted.attempts.values if labels[0] == "bounced"]
        assert refused[1] == "address"
        assert counted.signatures.values == {(): 1}
        assert counted.unrecorded.values == {(): 0}
        assert 'postroad_attempt_seconds_count{provider="others"} 2.0' in counted.render().decode()
    assert counted.connections.values == {(): 0}


async def test_a_recipient_without_a_route_counts_for_no_provider(url: str) -> None:
    async with engine_harness.running_engine(url, port=1, zones={"example.net": {"MX": ["0 ."]}}) as harness:
        await harness.settle(await harness.send("ada@example.net"))
        assert harness.ctx.metrics.recipients.values["none", "bounced"] == 1


GOOGLE = engine_harness.zones_of({"mx.google.com": "127.0.0.1"})


async def test_the_time_of_what_is_delivered_is_counted_and_that_of_the_rest_is_not(database_url: str) -> None:
    answers = iter(["451 4.3.0 later", "250 2.1.5 ok", "550 5.1.1 no such user"])
    async with engine_harness.delivering_to(database_url, {"RCPT": lambda _: next(answers)}, zones=GOOGLE) as (
        _,
        harness,
    ):
        delayed = await harness.send()
        await harness.settle(delayed)
        # An attempt that is repeated ends nothing.
        assert sum(harness.ctx.metrics.recipients.values.values()) == 0
        harness.pass_seconds(600)
        assert (await harness.settle(delayed, attempts=2)).standing == ("delivered", 2, 250)
        assert (await harness.settle(await harness.send())).standing == ("bounced", 1, 550)
        async with harness.ctx.store.scanning() as tx:
            found = {one.provider: one for one in await mail_counts.hourly_by_provider(tx, from_hour=0)}
        google = found["google"]
        assert (google.delivered, google.deferred, google.bounced) == (1, 1, 1)
        assert google.mean_delivery_time == 600_000_000
        assert found[""].mean_delivery_time is None
