"""Reports to return paths: bounces and complaints, from any octets.

Holds: nothing is raised; no more is told than the bounds allow; all that is kept is on one line and cannot be taken for
anything but text; what follows from a report is one of the dispositions.
"""

import re
from typing import Final

from postroad.model.bounces import disposition
from postroad.protocol.mime import report_parser
from postroad.protocol.reports import arf, bounce_text, dsn
from postroad.protocol.smtp import values
from tests.fuzz import target
from tests.protocol.reports import bounces, complaints, odd_bounces

_UNSEEN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def check(data: bytes) -> None:
    outcomes = dsn.read(data)
    assert len(outcomes) <= dsn.MAX_RECIPIENTS
    for outcome in outcomes:
        for address in (outcome.final_recipient, outcome.original_recipient):
            check_text(address, most=dsn.ADDRESS_CHARACTERS)
        check_text(outcome.words, most=bounce_text.TEXT_CHARACTERS)
        check_text(outcome.reply.text, most=bounce_text.TEXT_CHARACTERS)
        assert 400 <= outcome.reply.code <= 599
        disposition.classify(values.RecipientResult(values.Stage.CONTENT, outcome.reply))
        disposition.find_retry_after(outcome.words)
    report = arf.read(data)
    if report is not None:
        check_text(report.kind, most=arf.TYPE_CHARACTERS)
        for address in report.senders:
            assert address
            check_text(address, most=arf.ADDRESS_CHARACTERS)
    for part in report_parser.walk(data):
        assert part.content_type == part.content_type.lower()


def check_text(text: str, *, most: int) -> None:
    assert len(text) <= most
    assert not _UNSEEN.search(text)
    text.encode()


def _samples() -> tuple[bytes, ...]:
    reported = [
        sample.content.encode()
        for module in (bounces, odd_bounces)
        for sample in vars(module).values()
        if isinstance(sample, bounces.Bounce)
    ]
    return (
        *dict.fromkeys(reported),
        *(text.encode() for text in (complaints.FULL, complaints.REDACTED, complaints.SEVERAL)),
    )


TARGET: Final = target.Target(
    name="report",
    open=target.plain(check),
    watches=(
        "protocol/reports/dsn.py",
        "protocol/reports/arf.py",
        "protocol/reports/bounce_text.py",
        "protocol/mime/report_parser.py",
        "protocol/mime/part_walker.py",
        "model/bounces/disposition.py",
        "model/bounces/disposition.py",
    ),
    seeds=_samples(),
    max_octets=6_000,
    steps=(40_000, 300),
)
