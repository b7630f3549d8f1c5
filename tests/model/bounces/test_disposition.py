"""Bounce classification: the disposition at every stage, and the reasons of a collection of real replies."""

import pathlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.model.bounces import disposition as bounces_disposition
from postroad.model.bounces import reasons
from postroad.protocol.smtp import values

Cause = values.Cause
Fault = bounces_disposition.Fault
Stage = values.Stage
Verdict = bounces_disposition.Verdict

CORPUS = pathlib.Path(__file__).with_name("replies.txt")
ENHANCED = re.compile(r"([245]\.\d{1,3}\.\d{1,3})(?: |$)")
BEFORE_RECIPIENT = (Stage.CONNECT, Stage.BANNER, Stage.HELLO, Stage.STARTTLS, Stage.AUTH, Stage.MAIL)
REPLIED = tuple(stage for stage in Stage if stage not in {Stage.ROUTE, Stage.CONNECT})


def read_reply(wire: str) -> values.Reply:
    lines = [line[4:] for line in wire.splitlines()]
    found = ENHANCED.match(lines[0])
    enhanced = found[1] if found and found[1][0] == wire[0] else ""
    text = " ".join(line.removeprefix(enhanced).strip() for line in lines)
    return values.Reply(int(wire[:3]), text, enhanced)


def read_corpus() -> list[tuple[str, Stage, str]]:
    blocks = []
    for block in CORPUS.read_text().split("\n\n"):
        lines = [line for line in block.splitlines() if not line.startswith("#")]
        if lines:
            reason, _, stage = lines[0].partition(" ")
            blocks.append((reason, Stage(stage or "recipient"), "\n".join(lines[1:])))
    return blocks


def classify(wire: str, stage: Stage = Stage.RECIPIENT) -> bounces_disposition.Disposition:
    return bounces_disposition.classify(values.RecipientResult(stage, read_reply(wire)))


def classify_failure(stage: Stage, cause: Cause, *, in_doubt: bool = False) -> bounces_disposition.Disposition:
    return bounces_disposition.classify(values.RecipientResult(stage, cause=cause, in_doubt=in_doubt))


@pytest.mark.parametrize("reason, stage, wire", read_corpus())
def test_a_reply_is_understood(reason: str, stage: Stage, wire: str) -> None:
    disposition = classify(wire, stage)
    assert disposition.reason == reason
    assert disposition.verdict is (Verdict.BOUNCED if wire[0] == "5" else Verdict.RETRY)
    assert disposition.fault is reasons.REASONS[reason].fault


def test_the_collection_has_no_reply_twice_and_is_large_enough_to_be_representative() -> None:
    wires = [wire for _, _, wire in read_corpus()]
    assert len(set(wires)) == len(wires) >= 120


def test_a_success_after_the_content_is_a_delivery_and_always_the_same_value() -> None:
    delivered = classify("250 2.0.0 Ok: queued as 4VXYZ", Stage.CONTENT)
    assert (delivered.verdict, delivered.fault, delivered.reason) == (Verdict.DELIVERED, None, "delivered")
    assert delivered is classify("251 will forward", Stage.CONTENT)


@pytest.mark.parametrize("stage", [stage for stage in REPLIED if stage is not Stage.CONTENT])
def test_a_success_anywhere_else_is_no_delivery(stage: Stage) -> None:
    disposition = classify("250 Ok", stage)
    assert (disposition.verdict, disposition.fault, disposition.reason) == (
        Verdict.RETRY,
        Fault.NETWORK,
        "protocol_error",
    )


@pytest.mark.parametrize("code", [0, 99, 199, 354, 600, 999])
def test_what_is_no_final_reply_to_the_content_is_tried_again(code: int) -> None:
    assert (
        bounces_disposition.classify(values.RecipientResult(Stage.CONTENT, values.Reply(code, "odd"))).verdict
        is Verdict.RETRY
    )


@pytest.mark.parametrize("stage", REPLIED)
def test_a_refusal_for_good_bounces_and_before_the_recipient_another_host_is_asked_first(stage: Stage) -> None:
    disposition = classify("554 No", stage)
    assert disposition.verdict is Verdict.BOUNCED
    assert disposition.next_host is (stage in BEFORE_RECIPIENT)


@pytest.mark.parametrize("stage", REPLIED)
def test_a_refusal_for_now_is_tried_again_and_before_mail_another_host_is_asked_first(stage: Stage) -> None:
    disposition = classify("450 Not now", stage)
    assert disposition.verdict is Verdict.RETRY
    assert disposition.next_host is (stage in BEFORE_RECIPIENT and stage is not Stage.MAIL)


def test_a_host_that_closes_the_session_at_mail_is_not_the_last_word_unless_it_asks_for_less() -> None:
    assert classify("421 4.4.2 Error: timeout exceeded", Stage.MAIL).next_host
    assert classify("421 too many messages in one connection", Stage.MAIL).next_host
    assert not classify("421 4.7.0 Rate limited", Stage.MAIL).next_host
    assert not classify("421 4.4.2 Error: timeout exceeded", Stage.RECIPIENT).next_host


@pytest.mark.parametrize("stage", REPLIED)
def test_only_a_bounce_that_speaks_of_the_recipient_is_the_fault_of_the_address(stage: Stage) -> None:
    is_theirs = stage in {Stage.RECIPIENT, Stage.DATA, Stage.CONTENT}
    assert (classify("550 5.1.1 User unknown", stage).fault is Fault.ADDRESS) is is_theirs
    assert classify("450 4.1.1 User unknown", stage).fault is not Fault.ADDRESS


def test_who_is_unknown_at_mail_is_the_sender() -> None:
    assert classify("550 5.1.1 User unknown", Stage.MAIL).reason == "sender_rejected"


def test_a_full_mailbox_is_not_the_fault_of_the_address() -> None:
    assert classify("552 5.2.2 Mailbox full").fault is Fault.POLICY


def test_552_at_mail_is_about_the_size_because_no_mailbox_is_known_yet() -> None:
    assert (
        classify("552 Requested mail action aborted: exceeded storage allocation", Stage.MAIL).reason
        == "message_too_large"
    )
    assert classify("552 Requested mail action aborted: exceeded storage allocation").reason == "mailbox_full"


@pytest.mark.parametrize(
    "wire",
    [
        "451 4.7.1 <spam.blocked.rate-limit@example.org>: no",
        "451 4.7.1 rate-limit@example.org,greylisted@example.org:no",
    ],
)
def test_the_words_of_an_address_are_not_the_words_of_the_destination(wire: str) -> None:
    assert classify(wire).reason == classify("451 4.7.1 no").reason == "policy_refused"


@pytest.mark.parametrize(
    "wire, reason",
    [
        ("421 4.7.0 Too many connections", "too_many_connections"),
        ("550 5.7.1 Rate limited, try again in 10 minutes", "rate_limited"),
        ("554 5.7.1 Client host [192.0.2.7] blocked using zen.spamhaus.org", "ip_blocked"),
        ("554 5.7.1 Greylisted, try again in 10 minutes", "greylisted"),
    ],
)
def test_who_asks_for_less_gets_less_even_with_a_refusal_for_good(wire: str, reason: str) -> None:
    disposition = classify(wire)
    assert (disposition.reason, disposition.slow_down) == (reason, True)
    assert disposition.fault in {Fault.RATE, Fault.REPUTATION}
    assert disposition.retry_after == (600 if "10 minutes" in wire else None)


@pytest.mark.parametrize(
    "wire",
    [
        "451 4.7.1 Greylisted",  # each new sender is, and the others are welcome
        "450 4.2.1 The user you are trying to contact is receiving mail too quickly",  # one mailbox
        "550 5.7.1 blocked by policy",
        "550 5.7.1 low reputation of the sending domain",  # one account's domain
        "550 5.1.1 User unknown",
    ],
)
def test_what_concerns_one_recipient_or_one_sender_slows_nobody_else(wire: str) -> None:
    assert not classify(wire).slow_down


@pytest.mark.parametrize(
    "wire, reason",
    [
        ("450 4.1.0 x", "mailbox_unavailable"),
        ("450 4.2.0 x", "mailbox_unavailable"),
        ("450 4.3.0 x", "destination_trouble"),
        ("450 4.4.0 x", "destination_unreachable"),
        ("450 4.5.0 x", "command_refused"),
        ("550 5.6.0 x", "bad_format"),
        ("550 5.7.0 x", "policy_refused"),
        ("421 x", "destination_trouble"),
        ("450 x", "mailbox_unavailable"),
        ("451 x", "destination_trouble"),
        ("452 x", "destination_trouble"),
        ("454 x", "destination_trouble"),
        ("455 x", "command_refused"),
        ("500 x", "command_refused"),
        ("501 x", "command_refused"),
        ("502 x", "command_refused"),
        ("503 x", "command_refused"),
        ("504 x", "command_refused"),
        ("521 x", "no_mail_service"),
        ("530 x", "login_required"),
        ("551 x", "moved_address"),
        ("552 x", "mailbox_full"),
        ("555 x", "command_refused"),
        ("556 x", "null_mx"),
        ("459 x", "deferred"),
        ("599 x", "refused"),
    ],
)
def test_codes_decide_where_the_words_say_nothing(wire: str, reason: str) -> None:
    assert classify(wire).reason == reason


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("Greylisted, please try again in 300 seconds", 300),
        ("Greylisted for 5 minutes", 300),
        ("Try again in 1 hour", 3600),
        ("please retry in 10 mins", 600),
        ("retry after 00:15:00", 900),
        ("retry after 02:15:07", 8_107),
        ("Greylisting in action, please come back in 00:04:59", 299),
        ("Please wait 45s and retry", 45),
        ("try again after 2 min.", 120),
        ("Too many messages. Retry-After: 120", 120),
        ("deferred, try again in about 3 hours", 10_800),
        ("try again in 9 days", 86_400),
        ("try again later", None),
        ("more than 100 messages in 60 minutes", None),
        ("try again later, error code 12345", None),
        ("see https://example.org/retry/5m-limits/2024", None),
        ("come back at 12:30", None),
    ],
)
def test_a_time_is_read_when_the_destination_names_one(text: str, seconds: int | None) -> None:
    assert classify(f"451 4.7.1 {text}").retry_after == seconds


def test_a_time_in_a_plain_refusal_for_good_means_nothing() -> None:
    assert classify("550 5.1.1 User unknown, try again in 5 minutes").retry_after is None


@pytest.mark.parametrize(
    "cause, reason, fault",
    [
        (Cause.NULL_MX, "null_mx", Fault.ADDRESS),
        (Cause.DOMAIN_NOT_FOUND, "domain_not_found", Fault.ADDRESS),
        (Cause.BAD_ADDRESS, "bad_address", Fault.ADDRESS),
        (Cause.MAIL_LOOP, "mail_loop", Fault.NETWORK),
        (Cause.NO_ROUTE, "no_route", Fault.NETWORK),
        (Cause.CONTENT_MISSING, "refused_here", Fault.OURS),
    ],
)
def test_without_a_route_for_good_a_recipient_bounces(cause: Cause, reason: str, fault: Fault) -> None:
    disposition = classify_failure(Stage.ROUTE, cause)
    assert disposition == bounces_disposition.Disposition(Verdict.BOUNCED, fault, reason)


@pytest.mark.parametrize("cause", [Cause.DNS_FAILED, Cause.PRIVATE_ADDRESS])
def test_without_a_route_for_now_a_recipient_is_deferred(cause: Cause) -> None:
    disposition = classify_failure(Stage.ROUTE, cause)
    assert disposition == bounces_disposition.Disposition(Verdict.RETRY, Fault.NETWORK, cause.value)


@pytest.mark.parametrize("cause", [Cause.WORKER_CRASHES, Cause.INTERNAL_ERROR])
def test_an_error_of_this_service_defers_and_is_our_fault(cause: Cause) -> None:
    disposition = classify_failure(Stage.ROUTE, cause)
    assert disposition == bounces_disposition.Disposition(Verdict.RETRY, Fault.OURS, "refused_here")


@pytest.mark.parametrize(
    "stage, cause, reason",
    [
        (Stage.CONNECT, Cause.CONNECTION_REFUSED, "connection_refused"),
        (Stage.CONNECT, Cause.CONNECTION_TIMED_OUT, "connection_timed_out"),
        (Stage.CONNECT, Cause.HOST_UNREACHABLE, "host_unreachable"),
        (Stage.CONNECT, Cause.CONNECTION_FAILED, "connection_failed"),
        (Stage.STARTTLS, Cause.TLS_FAILED, "tls_failed"),
        (Stage.STARTTLS, Cause.CONNECTION_LOST, "tls_failed"),
        (Stage.STARTTLS, Cause.REPLY_TIMED_OUT, "tls_failed"),
        (Stage.BANNER, Cause.REPLY_TIMED_OUT, "reply_timed_out"),
        (Stage.HELLO, Cause.CONNECTION_LOST, "connection_lost"),
        (Stage.MAIL, Cause.CONNECTION_LOST, "connection_lost"),
        (Stage.RECIPIENT, Cause.PROTOCOL_ERROR, "protocol_error"),
        (Stage.DATA, Cause.PROTOCOL_ERROR, "protocol_error"),
        (Stage.CONTENT, Cause.CONNECTION_LOST, "connection_lost"),
    ],
)
def test_a_network_failure_defers_and_before_the_recipient_another_host_is_tried(
    stage: Stage, cause: Cause, reason: str
) -> None:
    disposition = classify_failure(stage, cause)
    expected = bounces_disposition.Disposition(
        Verdict.RETRY, Fault.NETWORK, reason, next_host=stage in BEFORE_RECIPIENT
    )
    assert disposition == expected


def test_a_connection_lost_after_the_content_is_in_doubt_and_tried_again() -> None:
    disposition = classify_failure(Stage.CONTENT, Cause.CONNECTION_LOST, in_doubt=True)
    assert disposition == bounces_disposition.Disposition(Verdict.RETRY, Fault.NETWORK, "lost_after_content")


@pytest.mark.parametrize(
    "stage, cause, reason",
    [
        (Stage.MAIL, Cause.MESSAGE_TOO_LARGE, "message_too_large"),
        (Stage.MAIL, Cause.EXTENSION_MISSING, "extension_missing"),
        (Stage.MAIL, Cause.UNSENDABLE_ADDRESS, "refused_here"),
        (Stage.RECIPIENT, Cause.UNSENDABLE_ADDRESS, "refused_here"),
    ],
)
def test_what_is_refused_here_bounces_and_is_never_the_fault_of_the_address(
    stage: Stage, cause: Cause, reason: str
) -> None:
    disposition = classify_failure(stage, cause)
    assert (disposition.verdict, disposition.reason) == (Verdict.BOUNCED, reason)
    assert disposition.fault is not Fault.ADDRESS
    assert disposition.next_host is (stage is Stage.MAIL)


# Sentences that an earlier version read, and that therefore changed who was suspended.
SENTENCES = (
    "",
    "example.org does not accept mail (null MX)",
    "the domain example.org does not exist",
    "mail for example.org loops back to this host",
    "not tried because of an error in this service",
    "connecting to mx.example.org [192.0.2.9]:25: connection refused",
    "the destination did not answer in time",
    "the destination sent an invalid reply",
    "the destination takes messages of at most 1000 octets",
)


@pytest.mark.parametrize("cause", list(Cause))
@pytest.mark.parametrize("stage", list(Stage))
def test_the_sentence_beside_a_cause_changes_nothing(stage: Stage, cause: Cause) -> None:
    expected = classify_failure(stage, cause)
    for sentence in SENTENCES:
        result = values.RecipientResult(stage, cause=cause, detail=sentence)
        assert bounces_disposition.classify(result) == expected, sentence


@given(
    st.sampled_from(list(Stage)),
    st.builds(
        values.Reply,
        st.integers(200, 599),
        st.text(max_size=2000),
        st.from_regex(r"([245]\.[0-9]{1,3}\.[0-9]{1,3})?", fullmatch=True),
    ),
)
def test_whatever_a_destination_says_the_verdict_follows_the_code(stage: Stage, reply: values.Reply) -> None:
    disposition = bounces_disposition.classify(values.RecipientResult(stage, reply))
    if reply.code >= 500:
        assert disposition.verdict is Verdict.BOUNCED
    elif reply.code < 300 and stage is Stage.CONTENT:
        assert disposition.verdict is Verdict.DELIVERED
    else:
        assert disposition.verdict is Verdict.RETRY
    if disposition.fault is Fault.ADDRESS:
        assert disposition.verdict is Verdict.BOUNCED
        assert stage not in BEFORE_RECIPIENT
    assert disposition.reason in reasons.REASONS
    assert disposition.retry_after is None or 0 <= disposition.retry_after <= 86_400


@given(st.sampled_from(list(Stage)), st.sampled_from([None, *Cause]), st.text(), st.booleans())
def test_every_failure_has_a_disposition(
    stage: Stage,
    cause: Cause | None,
    detail: str,
    in_doubt: bool,  # noqa: FBT001 - hypothesis gives it by position
) -> None:
    result = values.RecipientResult(stage, cause=cause, detail=detail, in_doubt=in_doubt)
    disposition = bounces_disposition.classify(result)
    assert disposition.verdict is (Verdict.BOUNCED if result.permanent else Verdict.RETRY)
    assert bounces_disposition.explain(disposition.reason)


# Faults of this installation.


@pytest.mark.parametrize(
    "stage, wire, slow_down",
    [
        (Stage.MAIL, "530 5.7.0 Authentication required", True),
        (Stage.MAIL, "530 Must issue a STARTTLS command first", True),
        (Stage.MAIL, "535 5.7.8 Error: authentication failed", True),
        (Stage.MAIL, "538 5.7.11 Encryption required", True),
        (Stage.RECIPIENT, "530 5.7.0 Authentication required", True),
        # A name of the sender, or the recipient's server, may have caused these words: the mail of others goes on.
        (Stage.MAIL, "550 5.7.1 The domain bounces.relaying.example is not verified", False),
        (Stage.RECIPIENT, "554 5.7.1 <ada@example.org>: Relay access denied", False),
        (Stage.RECIPIENT, "550 There is no domain relaying.example", False),
    ],
)
def test_an_upstream_that_does_not_know_us_is_our_own_fault_and_not_the_recipients(
    stage: Stage, wire: str, *, slow_down: bool
) -> None:
    result = values.RecipientResult(stage, read_reply(wire))
    ours = bounces_disposition.classify(result, is_upstream=True)
    assert (ours.verdict, ours.fault, ours.reason) == (Verdict.RETRY, Fault.OURS, "configuration")
    assert (ours.is_configuration, ours.slow_down, ours.next_host) == (True, slow_down, False)
    # Any other server says this about its own users.
    assert bounces_disposition.classify(result).verdict is Verdict.BOUNCED


@pytest.mark.parametrize(
    "stage, wire",
    [
        (Stage.RECIPIENT, "550 5.1.1 no such user"),
        (Stage.RECIPIENT, "550 5.1.1 undeliverable: host mx.example.org said: 550 5.7.1 relaying denied"),
        (Stage.MAIL, "550 5.7.1 sender not allowed"),
        (Stage.CONTENT, "554 5.7.1 relaying denied"),
        (Stage.MAIL, "450 4.7.0 Authentication required"),
    ],
)
def test_any_other_refusal_of_an_upstream_is_one_like_any_servers(stage: Stage, wire: str) -> None:
    result = values.RecipientResult(stage, read_reply(wire))
    assert bounces_disposition.classify(result, is_upstream=True) == bounces_disposition.classify(result)


@pytest.mark.parametrize("stage", [Stage.ROUTE, Stage.CONNECT, Stage.STARTTLS, Stage.AUTH])
def test_a_wrong_setting_is_never_final(stage: Stage) -> None:
    for reply in (None, values.Reply(535, "wrong", "5.7.8")):
        disposition = bounces_disposition.classify(values.RecipientResult(stage, reply, Cause.CONFIGURATION))
        assert (disposition.verdict, disposition.fault, disposition.reason) == (
            Verdict.RETRY,
            Fault.OURS,
            "configuration",
        )
