"""The names of stages and causes, which logs, rows and pages keep, and which causes no retry can change."""

from postroad.protocol.smtp import values

PERMANENT = [
    *("bad_address", "domain_not_found", "null_mx", "mail_loop", "no_route", "content_missing", "message_too_large"),
    *("extension_missing", "unsendable_address"),
]
TEMPORARY = [
    *(
        "configuration",
        "dns_failed",
        "private_address",
        "worker_crashes",
        "internal_error",
        "connection_refused",
        "connection_timed_out",
    ),
    *("host_unreachable", "connection_failed", "tls_failed", "connection_lost", "reply_timed_out", "protocol_error"),
]


def test_stages_are_in_the_order_of_a_transaction() -> None:
    stages = ["route", "connect", "banner", "hello", "starttls", "auth", "mail", "recipient", "data", "content"]
    assert [*values.Stage] == stages


def test_causes_are_permanent_or_not() -> None:
    assert sorted(values.Cause) == sorted(PERMANENT + TEMPORARY)
    assert sorted(values.PERMANENT_CAUSES) == sorted(PERMANENT)
