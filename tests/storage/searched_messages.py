"""Messages that differ in every way that a search can ask for, and what is true of each, in words of Python."""

from postroad.storage.engine.store import Store
from postroad.storage.mail import attempts, message_search, messages, queue
from postroad.storage.mail.message_search import Condition, Kind
from tests.storage import samples

SENDERS = ("shop@example.com", "news@example.com")
STATES = ("queued", "delivered", "failed")
SOURCES = ("api", "smtp")
SUBJECTS = ("Your ORDER 50%", "Grüße, 'order' 📮", "news")
# What became of the second recipient of a message, by its number: outcome, reply code, enhanced code, fault, reason.
RESULTS = (
    ("queued", None, "", None, "", ""),
    ("delivered", 250, "2.0.0", None, "delivered", "google"),
    ("bounced", 550, "5.1.1", "address", "unknown_address", "google"),
    ("deferred", 451, "4.2.2", "policy", "mailbox_full", "mx.example.org"),
    ("failed", 421, "4.7.0", "rate", "greylisted", "upstream:relay"),
    # Bounced without an attempt: its address was on the suppression list.
    ("bounced", None, "", None, "", ""),
)


def number_of(message: messages.NewMessage) -> int:
    return int(message.id.removeprefix("em_"))


def status_of(message: messages.NewMessage) -> str:
    return STATES[number_of(message) % 3]


MESSAGES = [
    samples.message(
        f"em_{number:03}",
        sender_key=SENDERS[number % 2],
        source=SOURCES[number // 2 % 2],
        subject=SUBJECTS[number // 4 % 3],
        tags=("all", f"tag{number % 4}"),
        metadata=f'{{"order":"{number % 5}","all":""}}',
        recipient_count=2,
    )
    for number in range(48)
]


def second_recipient(message: messages.NewMessage) -> messages.NewRecipient:
    number = number_of(message)
    domain = ("example.org", "gmail.com")[number % 2]
    name = f"person{1 + number % 3}@{domain}"
    return samples.recipient(message.id, 1 + number % 3, email=name, email_key=name, domain=domain)


def result_of(message: messages.NewMessage) -> tuple[str, int | None, str, str | None, str, str]:
    return RESULTS[number_of(message) // 2 % len(RESULTS)]


async def fill(store: Store) -> None:
    """Messages that differ in every way; each has a recipient of its own kind and one that all have."""
    foreign = samples.message("em_020", "acc_2", tags=("all",), subject="order")
    people = [one for m in MESSAGES for one in (samples.recipient(m.id), second_recipient(m))]
    foreign_one = samples.recipient("em_020", 0, "acc_2")
    ended = {second_recipient(m).id for m in MESSAGES if result_of(m)[0] not in ("queued", "deferred")}
    waiting = [one for one in people if one.id not in ended]
    async with store.transaction() as tx:
        await messages.insert(tx, [*MESSAGES, foreign])
        await messages.insert_recipients(tx, [*people, foreign_one])
        sizes = {one.message_id: 1 for one in people}
        await queue.insert(tx, [*waiting, foreign_one], sizes, now=samples.NOW)
        final = [("acc_1", m.id, status_of(m), "settled", samples.NOW) for m in MESSAGES if status_of(m) != "queued"]
        await messages.finish(tx, final)
        tried = [m for m in MESSAGES if result_of(m)[0] != "queued"]
        await messages.record_results(tx, [update(m) for m in tried])
        await attempts.insert(tx, [attempt(m) for m in tried if result_of(m)[4]])


def update(message: messages.NewMessage) -> messages.RecipientUpdate:
    status, code, *_ = result_of(message)
    key = ("acc_1", message.id, second_recipient(message).id)
    return messages.RecipientUpdate(*key, status, "reserved", 1, code, "a reply", None, None, cause_of(message))


def cause_of(message: messages.NewMessage) -> str | None:
    """Why it was not attempted, where that is not the suppression list."""
    status, code, *_ = result_of(message)
    return "unsubscribed" if (status, code) == ("bounced", None) and number_of(message) % 2 else None


def attempt(message: messages.NewMessage) -> attempts.Attempt:
    status, code, enhanced, fault, reason, provider = result_of(message)
    verdict = "retry" if status == "deferred" else status
    return attempts.Attempt(
        "acc_1",
        message.id,
        second_recipient(message).id,
        samples.NOW,
        5,
        provider,
        "mx.example.org",
        "192.0.2.1",
        "",
        "recipient",
        verdict,
        fault,
        reason,
        code,
        enhanced,
        "a reply",
        0,
    )


def is_true(message: messages.NewMessage, one: Condition) -> bool:
    return _is_plainly_true(message, one) is not one.is_negated


def _is_plainly_true(message: messages.NewMessage, one: Condition) -> bool:
    known: dict[Kind, set[object]] = {
        Kind.STATUS: {status_of(message)},
        Kind.SOURCE: {message.source},
        Kind.SENDER: {message.sender_key},
        Kind.SENDER_DOMAIN: {"@example.com"},
        Kind.SENDER_PREFIX: {message.sender_key[:2]},
        Kind.TAG: set(message.tags),
        Kind.METADATA: {f"order:{number_of(message) % 5}", "all:"},
        Kind.ID: {message.id},
        Kind.ID_PREFIX: {message.id[:5]},
    }
    if one.kind is Kind.WORD:
        return str(one.value) in message.subject.lower()
    if one.kind in known:
        return one.value in known[one.kind]
    return any(one.value in facts.get(one.kind, ()) for facts in facts_of_recipients(message))


def facts_of_recipients(message: messages.NewMessage) -> list[dict[Kind, set[object]]]:
    second = second_recipient(message)
    status, code, enhanced, fault, reason, provider = result_of(message)
    cause = cause_of(message)
    first = {
        Kind.RECIPIENT: {"person0@example.org"},
        Kind.RECIPIENT_DOMAIN: {"example.org"},
        Kind.RECIPIENT_PREFIX: {"person0", "person"},
        Kind.OUTCOME: {"queued"},
    }
    other = {
        Kind.RECIPIENT: {second.email_key},
        Kind.RECIPIENT_DOMAIN: {second.domain},
        Kind.RECIPIENT_PREFIX: {second.email_key[:7], "person"},
        Kind.OUTCOME: {status},
        Kind.UNATTEMPTED: {"bounced"} if (status, code, cause) == ("bounced", None, None) else set(),
        Kind.CAUSE: {cause},
        Kind.VERDICT: {"retry" if status == "deferred" else status} if reason else set(),
        Kind.CODE: {code},
        Kind.ENHANCED_CODE: {enhanced} if reason else set(),
        Kind.FAULT: {fault},
        Kind.REASON: {reason},
        Kind.PROVIDER: {provider},
        Kind.OTHER_PROVIDER: {"upstream:"} if provider == "mx.example.org" else set(),
    }
    return [first, other]  # type: ignore[list-item]


def passes(message: messages.NewMessage, chosen: message_search.Filter) -> bool:
    """Clauses that are only about recipients are true of one of them together, the others each by itself."""
    shared = [clause for clause in chosen.clauses if all(is_of_recipient(one) for one in clause)]
    return (
        chosen.after <= message.id < chosen.before
        and all(any(is_true(message, one) for one in clause) for clause in chosen.clauses if clause not in shared)
        and any(
            all(any(one.value in facts.get(one.kind, ()) for one in clause) for clause in shared)
            for facts in facts_of_recipients(message)
        )
    )


def is_of_recipient(one: Condition) -> bool:
    return one.kind in message_search._OF_RECIPIENT and not one.is_negated
