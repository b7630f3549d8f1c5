"""Faults of this installation: never final, whatever the reply, and told apart from an upstream's other refusals."""

import pytest

from postroad.model.bounces import disposition as bounces_disposition
from postroad.protocol.smtp import values
from tests.model.bounces.test_disposition import read_reply

Cause = values.Cause
Stage = values.Stage
Fault = bounces_disposition.Fault
Verdict = bounces_disposition.Verdict


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
