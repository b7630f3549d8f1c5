"""`postroad queue`, on both engines: what operators see, and what they can do without harm.

What is held is said, and a restored queue is not released by accident.
"""

import pytest

from postroad import context
from postroad.services.queue import holds
from postroad.storage.mail import queue
from tests import queue_steps
from tests.cli.both_engines import empty
from tests.cli.cli_runner import Installation

__all__ = ["empty"]

SEND = ("send", "--from", "shop@example.com", "--subject", "Hello", "--text", "Hi")


@pytest.fixture
def shop(installation: Installation) -> Installation:
    """An installation whose account can send."""
    installation.text("domain", "add", "example.com", "--verified")
    installation.text("credits", "add", "--amount", "100")
    return installation


def send(shop: Installation, *to: str) -> str:
    """Queue a message and return its id."""
    message: dict[str, str] = shop.json(*SEND, *(word for address in to for word in ("--to", address)))["message"]
    return message["id"]


def claim(shop: Installation, domain: str = "example.net") -> list[queue.Key]:
    async def claiming(ctx: context.Context) -> list[queue.Key]:
        account_id = str(shop_id)
        return await queue_steps.claim(ctx, account_id, domain=domain)

    shop_id = shop.json("account", "list")["accounts"][0]["id"]
    return shop.ask(claiming)


def defer(shop: Installation, domain: str = "example.net") -> None:
    """Let the destination defer the oldest recipient at a domain."""
    (key,) = claim(shop, domain)
    shop.ask(lambda ctx: queue_steps.defer(ctx, key))


def test_an_empty_queue_says_so(shop: Installation) -> None:
    assert shop.text("queue", "list") == "The queue is empty.\n"
    assert shop.json("queue", "list") == {
        "recipients": [],
        "counts": {"ready": 0, "waiting": 0, "scheduled": 0, "sending": 0, "held": 0},
        "oldest_queued_at": None,
        "domains": [],
        "holds": [],
    }


def test_people_see_what_waits_and_why(shop: Installation) -> None:
    send(shop, "ada@example.net")
    defer(shop)
    send(shop, "bob@example.org", "eve@example.org")
    lines = shop.text("queue", "list").splitlines()
    titles = ["RECIPIENT", "ADDRESS", "STATE", "ATTEMPTS", "NEXT", "ATTEMPT", "PROVIDER", "QUEUE", "REASON"]
    assert lines[0].split() == titles
    assert lines[1].split()[1:4] == ["ada@example.net", "waiting", "1"]
    assert "(in 3 min)" in lines[1]
    assert lines[1].endswith("google          451 4.7.1 greylisted")
    assert lines[2].split()[1:6] == ["bob@example.org", "ready", "0", "now", "-"]
    assert lines[-3] == "3 recipients: 2 ready, 1 waiting, 0 scheduled, 0 sending, 0 held."
    assert lines[-2].startswith("Oldest: queued at 2")
    assert lines[-1] == "Top domains: example.org 2, example.net 1"


def test_programs_get_the_same_with_the_names_of_the_api(shop: Installation) -> None:
    message_id = send(shop, "ada@example.net")
    defer(shop)
    (one,) = shop.json("queue", "list")["recipients"]
    assert (one["email"], one["message_id"], one["state"], one["attempt_count"]) == (
        "ada@example.net",
        message_id,
        "waiting",
        1,
    )
    assert (one["provider_queue"], one["last_smtp_code"]) == ("google", 451)
    assert one["due_at"] > one["queued_at"]
    assert one["why"].startswith("Google asked us to try later (4.7.1)")
    (traced,) = shop.json("queue", "show", message_id)["message"]["recipients"]
    assert (traced["queue"]["reason"]["code"], traced["queue"]["ahead"]) == ("deferred", 0)


def test_a_list_is_chosen_by_account_domain_message_state_and_number(shop: Installation) -> None:
    first = send(shop, "ada@example.net")
    defer(shop)
    send(shop, "bob@example.org")

    def shown(*words: str) -> list[str]:
        return [one["email"] for one in shop.json("queue", "list", *words)["recipients"]]

    assert shown("--domain", "Example.ORG") == ["bob@example.org"]
    assert shown("--message", first) == ["ada@example.net"]
    assert shown("--state", "waiting") == ["ada@example.net"]
    assert shown("--limit", "1") == ["ada@example.net"]
    shop.text("account", "create", "--name", "Other")
    assert shown("--account", "Other") == []
    assert shown("--account", "Shop") == ["ada@example.net", "bob@example.org"]
    assert "No recipients are in this state." in shop.text("queue", "list", "--state", "sending")


def test_a_message_is_shown_with_its_recipients_and_every_attempt(shop: Installation) -> None:
    message_id = send(shop, "ada@example.net", "bob@example.org")
    defer(shop)
    text = shop.text("queue", "show", message_id)
    assert text.startswith(f"Message {message_id} of account acc_")
    assert "ada@example.net: deferred\n  Google asked us to try later (4.7.1); next attempt at 2" in text
    assert " UTC; last result: 451 4.7.1 greylisted\n  1st attempt at 2" in text
    assert (
        "0.250 s, to mx.example.net [192.0.2.1], provider queue google, TLSv1.3\n    rcpt: 451 4.7.1 greylisted\n"
        in text
    )
    assert "    retry (greylisted, fault: rate)\n    " in text
    assert "bob@example.org: queued\n  ready; waiting for a free worker" in text


def test_one_recipient_is_shown_alone_and_for_programs(shop: Installation) -> None:
    message_id = send(shop, "ada@example.net", "bob@example.org")
    defer(shop)
    both = shop.json("queue", "show", message_id)["message"]
    alone = shop.json("queue", "show", both["recipients"][0]["id"])["message"]
    assert alone["recipients"] == both["recipients"][:1]
    (attempt,) = alone["attempts"]
    assert shop.json("queue", "show", both["recipients"][1]["id"])["message"]["attempts"] == []
    assert (attempt["reason"], attempt["fault"], attempt["duration_ms"], attempt["in_doubt"]) == (
        "greylisted",
        "rate",
        250,
        False,
    )
    assert attempt["explanation"].endswith(".")


def test_an_unknown_id_is_refused_with_a_sentence(shop: Installation) -> None:
    unknown = "em_" + "0" * 28
    for words in (("show", unknown), ("retry", unknown), ("cancel", unknown), ("list", "--message", unknown)):
        assert shop.refusal("queue", *words) == f"no such message or recipient: {unknown}"
    assert "is not the id of a message" in shop.refusal("queue", "show", "ada@example.net")


def test_what_waits_is_tried_now_on_request(shop: Installation) -> None:
    message_id = send(shop, "ada@example.net")
    defer(shop)
    assert shop.text("queue", "retry", message_id) == "1 recipient scheduled for an attempt now.\n"
    assert shop.json("queue", "list")["counts"] == {"ready": 1, "waiting": 0, "scheduled": 0, "sending": 0, "held": 0}
    assert shop.json("queue", "retry", "--all") == {"retried": 0, "being_sent": 0}


def test_retrying_leaves_alone_what_is_being_sent_and_says_so(shop: Installation) -> None:
    send(shop, "ada@example.net")
    claim(shop)
    said = shop.text("queue", "retry", "--domain", "example.net")
    assert said == "0 recipients scheduled for an attempt now. Skipped, because an attempt is in progress: 1.\n"


def test_one_recipient_is_canceled_without_further_questions(shop: Installation) -> None:
    message_id = send(shop, "ada@example.net")
    assert shop.text("queue", "cancel", message_id) == "1 recipient canceled.\n"
    shown = shop.json("queue", "show", message_id)["message"]
    assert (shown["status"], shown["billing_status"]) == ("failed", "settled")
    assert "failed: canceled by the operator" in shop.text("queue", "show", message_id)
    assert shop.json("account", "list")["accounts"][0]["credits"] == {"available": 99, "reserved": 0}
    shop.text("verify")


def test_several_recipients_are_canceled_only_by_those_who_mean_it(shop: Installation) -> None:
    message_id = send(shop, "ada@example.net", "bob@example.org")
    for choice in ((message_id,), ("--message", message_id), ("--account", "Shop")):
        refused = shop.refusal("queue", "cancel", *choice)
        assert refused == "this cancels 2 recipients and cannot be undone; add --yes to confirm"
    assert shop.json("queue", "list")["counts"]["ready"] == 2
    assert shop.json("queue", "cancel", message_id, "--yes") == {"canceled": 2, "being_sent": 0}


@pytest.mark.parametrize(
    "words", [("retry",), ("cancel",), ("retry", "em_1", "--all"), ("cancel", "em_1", "--domain", "a")]
)
def test_nobody_means_the_whole_queue_by_saying_nothing_nor_two_things_at_once(
    installation: Installation, words: tuple[str, ...]
) -> None:
    result = installation.run("queue", *words)
    assert result.exit_code == 2
    assert "Select recipients by id or by options" in result.stderr


@pytest.fixture
def restored(shop: Installation) -> Installation:
    """An installation after a restore, with two recipients in its queue."""
    send(shop, "ada@example.net", "bob@example.org")
    shop.ask(holds.hold_restored)
    return shop


def test_mail_is_held_and_released(shop: Installation) -> None:
    send(shop, "ada@example.net", "bob@example.org")
    first, second = shop.text("queue", "hold", "--domain", "Example.net").splitlines()
    assert first == "Held: mail to example.net; 1 recipient in the queue."
    assert second == (
        f"Attempts under way finish. To continue: postroad queue release --domain example.net --config {shop.file}"
    )
    assert shop.text("queue", "hold", "--domain", "example.net").startswith("Already held since 2")
    listed = shop.text("queue", "list")
    assert "ada@example.net  held   0         after the hold" in listed
    assert "2 recipients: 1 ready, 0 waiting, 0 scheduled, 0 sending, 1 held." in listed
    assert listed.splitlines()[-1].startswith("Held: mail to example.net, since 2")
    entries = shop.json("queue", "list", "--state", "held")
    (entry,) = entries["recipients"]
    assert entry["state"] == "held"
    assert entry["why"].endswith("UTC: postroad queue hold")
    assert entries["holds"][0]["domain"] == "example.net"
    assert shop.refusal("queue", "release") == "all mail: not held; held: mail to example.net"
    released = "Released: mail to example.net; 1 recipient in the queue.\n"
    assert shop.text("queue", "release", "--domain", "example.net") == released
    assert shop.json("queue", "list")["counts"] == {"ready": 2, "waiting": 0, "scheduled": 0, "sending": 0, "held": 0}


def test_an_account_is_held_by_name(shop: Installation) -> None:
    (account,) = shop.json("account", "list")["accounts"]
    data = shop.json("queue", "hold", "--account", account["name"])
    assert (data["hold"]["account_id"], data["hold"]["domain"]) == (account["id"], None)
    assert "held the delivery of all mail" in shop.text("audit-log")


def test_an_empty_queue_says_that_it_is_held(shop: Installation) -> None:
    shop.text("queue", "hold")
    first, second = shop.text("queue", "list").splitlines()
    assert first == "The queue is empty."
    assert second.startswith("Held: all mail, since 2")


def test_a_restored_queue_is_released_with_leave_after_what_may_be_a_duplicate_was_counted(
    restored: Installation,
) -> None:
    result = restored.run("queue", "release")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0].startswith("2 recipients may have been delivered already; restored from a backup whose newest")
    assert lines[1].split() == ["ACCOUNT", "DOMAIN", "RECIPIENTS"]
    assert [line.split()[1:] for line in lines[2:4]] == [["example.net", "1"], ["example.org", "1"]]
    assert lines[4].startswith("To cancel some of them first: postroad queue cancel --domain DOMAIN")
    assert lines[5] == f"Nothing was released. To release it: postroad queue release --config {restored.file} --yes"
    assert restored.json("queue", "list")["counts"]["held"] == 2
    assert "Released: all mail; 2 recipients in the queue." in restored.text("queue", "release", "--yes")
    assert restored.json("queue", "list")["counts"]["ready"] == 2


def test_each_recipient_that_may_be_a_duplicate_is_listed_on_request(restored: Installation) -> None:
    data = restored.json("queue", "release", "--list")
    assert (data["released"], data["may_be_duplicates"]) == (False, True)
    assert [one["email"] for one in data["recipients"]] == ["ada@example.net", "bob@example.org"]
    assert restored.text("queue", "release", "--list").splitlines()[0].endswith("  ada@example.net")


def test_what_was_cancelled_is_no_duplicate_and_the_rest_needs_no_leave(restored: Installation) -> None:
    restored.text("queue", "cancel", "--domain", "example.net")
    restored.text("queue", "cancel", "--domain", "example.org")
    assert restored.text("queue", "release") == "Released: all mail; 0 recipients in the queue.\n"
