"""What the simulator decides for each recipient, how it knows a second attempt, and what it keeps of that."""

import inspect

from postroad.network.smtp import smtp_server
from postroad.protocol.smtp import values
from postroad.services.messages import dev_inbox
from postroad.simulator import mailbox


def new_inbox() -> dev_inbox.Inbox:
    return dev_inbox.Inbox(clock=lambda: 1_800_000_000_000_000, entropy=bytes)


def new_policy(
    mail: dev_inbox.Inbox | None = None, deferrals: mailbox.Deferrals | None = None
) -> mailbox.MailboxPolicy:
    return mailbox.MailboxPolicy(mail or new_inbox(), deferrals or mailbox.Deferrals(), slow_seconds=0)


def code(verdict: smtp_server.PolicyDecision) -> int:
    assert isinstance(verdict, values.Reply)
    return verdict.code


def test_a_refusal_names_the_recipient() -> None:
    policy = new_policy()
    policy.mail("a@example.org", {})
    reply = policy.recipient("bounce@example.net", {})
    assert isinstance(reply, values.Reply)
    assert (reply.code, reply.enhanced) == (550, "5.1.1")
    assert reply.text.startswith("<bounce@example.net>: ")


def test_deferral_is_counted_for_each_message_and_recipient_over_all_sessions() -> None:
    mail, deferrals = new_inbox(), mailbox.Deferrals()
    attempts = {("one", "defer1"): 0, ("one", "defer2"): 0, ("two", "defer1"): 0}
    for expected in (451, 451, 250, 250):
        for sender, recipient in attempts:
            policy = new_policy(mail, deferrals)
            policy.mail(f"{sender}@example.org", {})
            assert code(policy.recipient(f"{recipient}@example.net", {})) == expected


def test_what_was_accepted_is_deferred_again_the_next_time() -> None:
    policy = new_policy()
    codes = []
    for _ in range(2):
        for _ in range(3):
            policy.mail("same@example.org", {})
            codes.append(code(policy.recipient("Defer@example.net", {})))
        taken = policy.message(values.MailTransaction("same@example.org", ("Defer@example.net",), (b"x\r\n",)))
        codes.append(code(taken))
    assert codes == [451, 451, 250, 250] * 2


def test_the_memory_of_deferrals_is_bounded() -> None:
    deferrals = mailbox.Deferrals(max_entries=2)
    for _ in range(2):
        assert deferrals.should_defer("a", "x")
    assert deferrals.should_defer("b", "x")
    assert not deferrals.should_defer("a", "x")
    assert deferrals.should_defer("c", "x")
    assert not deferrals.should_defer("a", "x")
    assert deferrals.should_defer("b", "x")
    assert deferrals.should_defer("b", "x")


async def test_a_slow_recipient_is_answered_late_and_lands_in_the_inbox_then() -> None:
    mail = new_inbox()
    policy = new_policy(mail)
    policy.mail("a@example.org", {})
    policy.recipient("slow@example.net", {})
    verdict = policy.message(values.MailTransaction("a@example.org", ("slow@example.net",), (b"x\r\n",)))
    assert mail.newest_first() == []
    assert inspect.isawaitable(verdict)
    assert code(await verdict) == 250
    assert len(mail.newest_first()) == 1


def test_dropping_ends_with_its_transaction() -> None:
    mail = new_inbox()
    policy = new_policy(mail)
    policy.mail("a@example.org", {})
    assert code(policy.recipient("drop@example.net", {})) == 250
    assert policy.data() is None
    assert policy.message(values.MailTransaction("a@example.org", ("drop@example.net",), (b"x\r\n",))) is None
    policy.mail("a@example.org", {})
    assert code(policy.recipient("jo@example.net", {})) == 250
    assert code(policy.data()) == 354
    assert mail.newest_first() == []
