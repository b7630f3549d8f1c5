"""`postroad queue hold` and `queue release`: what is held is said, and a restored queue is not released by accident."""

import pytest

from postroad.services.queue import holds
from tests.cli.both_engines import empty
from tests.cli.cli_runner import Installation
from tests.cli.test_queue import send, shop

__all__ = ["empty", "shop"]


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
