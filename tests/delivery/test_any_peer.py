"""Whatever a destination answers, and whenever it hangs up: each recipient ends, and what it took is on record."""

import collections
import random
import re
from collections.abc import Sequence

import pytest

from tests import smtp_peers
from tests.delivery import engine_harness
from tests.reliability import profile
from tests.smtp_peers import CLOSE, RESET

BYE = ("421 4.3.0 bye", CLOSE)
# Half of the answers to each verb are good. Hosts that do not answer at all are left alone for a while, and those that
# want less too, which would take time here; other tests have them.
WHIMS: dict[str, Sequence[smtp_peers.Answer]] = {
    "BANNER": ["220 peer.example ESMTP"] * 8 + [BYE],
    "MAIL": ["250 2.1.0 ok"] * 6 + ["451 4.3.0 no", BYE, CLOSE, RESET, b"what?\r\n"],
    "RCPT": ["250 2.1.5 ok"] * 8 + ["450 4.2.1 no", "550 5.7.1 never", BYE, CLOSE, RESET, "354 what?"],
    "DATA": ["354 go on"] * 5 + ["451 4.3.0 no", "554 5.7.1 never", BYE, CLOSE, "250 what?"],
    "CONTENT": [
        *["250 2.0.0 taken"] * 6,
        ("250 2.0.0 taken", CLOSE),
        ("250 2.0.0 taken", *BYE),
        "451 4.3.0 no",
        "554 5.7.1 never",
        BYE,
        CLOSE,
        RESET,
    ],
}
MAX_ATTEMPTS = 12
MESSAGES = 25 if profile.IS_LONG else 10


def whimsical(seed: int, confirmed: set[str]) -> smtp_peers.Script:
    """Answers by chance. The messages that are confirmed are noted."""
    chance = random.Random(seed)

    def content(text: str) -> smtp_peers.Answer:
        answer = chance.choice(WHIMS["CONTENT"])
        first = answer[0] if isinstance(answer, tuple) else answer
        if isinstance(first, str) and first.startswith("250"):
            confirmed.add(message_of(text))
        return answer

    verbs = {verb: lambda _, answers=answers: chance.choice(answers) for verb, answers in WHIMS.items()}
    return {**verbs, "CONTENT": content}


def message_of(text: str) -> str:
    """The id of the message that a content is of; nothing when it is empty, as RFC 2920 section 3.1 asks for.

    That is what ends a transaction whose DATA was sent ahead, and taken though nobody was accepted.
    """
    found = re.search(r"^Message-ID: <([^@]+)@", text, re.MULTILINE | re.IGNORECASE)
    assert found is not None or text == ""
    return found[1] if found else ""


@pytest.mark.parametrize("extensions", [smtp_peers.ALL_EXTENSIONS, ()], ids=["pipelining", "one_by_one"])
@pytest.mark.parametrize("seed", range(profile.SCALE))
async def test_what_is_recorded_is_what_the_destination_took(seed: int, extensions: tuple[str, ...], url: str) -> None:
    confirmed: set[str] = set()
    schedule = [1] * (MAX_ATTEMPTS - 1)
    async with engine_harness.delivering_to(
        url, whimsical(seed, confirmed), extensions=extensions, retry_seconds=schedule
    ) as (peer, harness):
        names = ("ada@example.net", "bob@example.net", "cy@example.net")
        sent = [await harness.send(*names[: 1 + number % 3]) for number in range(MESSAGES)]
        for attempts in range(1, MAX_ATTEMPTS + 1):
            for message_id in sent:
                await harness.settle(message_id, attempts=attempts)
            harness.pass_seconds(2)
        copies: collections.Counter[tuple[str, str]] = collections.Counter()
        for taken in peer.transactions:
            message_id = message_of(taken.content.decode())
            copies.update((message_id, command.partition("<")[2].partition(">")[0]) for command in taken.recipients)
        spent = 0
        for message_id in sent:
            seen = await harness.see(message_id)
            assert seen.message.status != "queued"
            for one in seen.recipients:
                attempts_of = [attempt for attempt in seen.attempts if attempt.recipient_id == one.id]
                assert one.attempt_count == len(attempts_of)
                in_doubt = sum(attempt.in_doubt for attempt in attempts_of)
                # Every copy but the confirmed one is accounted for by a doubt in the log.
                assert copies[message_id, one.email] <= in_doubt + (one.status == "delivered")
                assert one.status != "delivered" or copies[message_id, one.email] >= 1
                spent += one.status != "bounced"
            delivered = any(one.status == "delivered" for one in seen.recipients)
            assert delivered == (message_id in confirmed)
        assert await harness.credits() == (spent, 0)
