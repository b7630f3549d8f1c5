"""What the engine counts: recipients by their end, attempts by their reason, and what it holds at the moment."""

from postroad import config
from postroad.roles import composition
from postroad.services.accounts import account_registry as accounts
from postroad.services.messages import lookup as messages
from tests import accepted_mail, contexts, queue_steps, sections, smtp_peers
from tests.delivery import engine_harness


async def test_recipients_attempts_and_signatures_are_counted(url: str) -> None:
    def answer(line: str) -> str:
        return "550 5.1.1 nobody here" if "nobody" in line else "250 ok"

    async with (
        smtp_peers.serving({"RCPT": answer}) as peer,
        engine_harness.running_engine(url, port=peer.port, sign=True) as harness,
    ):
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
    async with (
        smtp_peers.serving({"RCPT": ["451 4.7.1 greylisted", "250 ok"]}) as peer,
        engine_harness.running_engine(url, port=peer.port) as harness,
    ):
        message_id = await harness.send("ada@example.net")
        await harness.settle(message_id)
        counted = harness.ctx.metrics
        assert sum(counted.recipients.values.values()) == 0
        assert [labels[0] for labels in counted.attempts.values] == ["retry"]


async def test_a_recipient_without_a_route_counts_for_no_provider(url: str) -> None:
    async with engine_harness.running_engine(url, port=1, zones={"example.net": {"MX": ["0 ."]}}) as harness:
        await harness.settle(await harness.send("ada@example.net"))
        assert harness.ctx.metrics.recipients.values["none", "bounced"] == 1


async def test_what_a_vanished_worker_left_behind_is_counted(url: str) -> None:
    clock = contexts.Clock()
    async with smtp_peers.serving({}) as peer:
        overrides: dict[str, object] = {
            "database": {"url": url},
            "security": {"secret_key": contexts.SECRET_KEY},
            **sections.spread("delivery", engine_harness.QUICK),
            "upstreams": [{"name": "relay", "host": "127.0.0.1", "port": peer.port, "tls": "off"}],
        }
        async with composition.open_context(config.load(environment={}, overrides=overrides), clock=clock) as ctx:
            account = await accounts.create(ctx, "Shop")
            await accepted_mail.allow_sending(ctx, account.id)
            message_id = await accepted_mail.accept(ctx, account.id)
            await queue_steps.claim(ctx, account.id)  # by a worker that is never heard of again
            clock.pass_seconds(61)
            async with engine_harness.running(ctx):

                async def is_delivered() -> bool:
                    return (await messages.find(ctx, account.id, message_id))[0].status == "delivered"

                await engine_harness.until(is_delivered)
            assert ctx.metrics.lost_leases.values == {(): 1}
            assert ctx.metrics.recipients.values["upstream:relay", "delivered"] == 1
