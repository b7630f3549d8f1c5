"""What the engine counts: recipients by their end, attempts by their reason, and what it holds at the moment."""

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


async def test_an_attempt_that_is_repeated_makes_no_recipient_final(url: str) -> None:
    async with engine_harness.delivering_to(url, {"RCPT": ["451 4.7.1 greylisted", "250 ok"]}) as (_, harness):
        message_id = await harness.send("ada@example.net")
        await harness.settle(message_id)
        counted = harness.ctx.metrics
        assert sum(counted.recipients.values.values()) == 0
        assert [labels[0] for labels in counted.attempts.values] == ["retry"]


async def test_a_recipient_without_a_route_counts_for_no_provider(url: str) -> None:
    async with engine_harness.running_engine(url, port=1, zones={"example.net": {"MX": ["0 ."]}}) as harness:
        await harness.settle(await harness.send("ada@example.net"))
        assert harness.ctx.metrics.recipients.values["none", "bounced"] == 1
