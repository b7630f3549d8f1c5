"""Reports that come back: bounces and complaints, from any octets.

Holds: nothing is raised; no more is told than the bounds allow; all that is kept is on one line and cannot be taken for
anything but text; what follows from a report is one of the judgements.
"""

import re
from typing import Final

from postroad.model import judging, reply_reading
from postroad.protocol import bounce_text, dsn, feedback_report, mime_parts
from postroad.protocol.smtp import values
from tests.fuzz import target
from tests.protocol import bounces, complaints, odd_bounces

_UNSEEN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def check(data: bytes) -> None:
    outcomes = dsn.read(data)
    assert len(outcomes) <= dsn.MOST_OUTCOMES
    for outcome in outcomes:
        for address in (outcome.final_recipient, outcome.original_recipient):
            _check_text(address, most=dsn.ADDRESS_CHARACTERS)
        _check_text(outcome.words, most=bounce_text.TEXT_CHARACTERS)
        _check_text(outcome.reply.text, most=bounce_text.TEXT_CHARACTERS)
        assert 400 <= outcome.reply.code <= 599
        judging.judge(values.Result(values.Stage.CONTENT, outcome.reply))
        reply_reading.find_time(outcome.words)
    report = feedback_report.read(data)
    if report is not None:
        _check_text(report.kind, most=feedback_report.TYPE_CHARACTERS)
        assert len(report.recipients) <= feedback_report.MOST_RECIPIENTS
        for address in (*report.senders, *report.recipients):
            assert address
            _check_text(address, most=feedback_report.ADDRESS_CHARACTERS)
    for part in mime_parts.walk(data):
        assert part.content_type == part.content_type.lower()


def _check_text(text: str, *, most: int) -> None:
    assert len(text) <= most
    assert not _UNSEEN.search(text)
    text.encode()


def _samples() -> tuple[bytes, ...]:
    told = [
        sample.content.encode()
        for module in (bounces, odd_bounces)
        for sample in vars(module).values()
        if isinstance(sample, bounces.Bounce)
    ]
    return (
        *dict.fromkeys(told),
        *(text.encode() for text in (complaints.FULL, complaints.REDACTED, complaints.SEVERAL)),
    )


TARGET: Final = target.Target(
    name="report",
    open=target.plain(check),
    watches=(
        "protocol/dsn.py",
        "protocol/feedback_report.py",
        "protocol/bounce_text.py",
        "protocol/mime_parts.py",
        "model/judging.py",
        "model/reply_reading.py",
    ),
    seeds=_samples(),
    most_octets=6_000,
    steps=(40_000, 300),
)
