"""A small snapshot in which everything is right, for tests that falsify it."""

from tests.chaos import customers, load, snapshot

ADA, BOB = "fine.0.0@north.example.net", "gone.0.1@north.example.net"
BODY = b'{"id":"evt_1"}'
BOUNCE_BODY = b'{"id":"evt_2"}'


def customer() -> customers.Customer:
    return customers.Customer("acc_1", "mail@shop0.example.com", "key", ("name", "password"), "whsec_1")


def submission(**changes: object) -> load.Submission:
    """The one that was sent: to Ada, who got it, and to Bob, who does not exist."""
    written = load.Submission("http-0", customer(), load.HTTP, (ADA, BOB), message_id="em_1", tries=1)
    for name, value in changes.items():
        setattr(written, name, value)
    return written


def recipient(email: str = ADA, **changes: str) -> snapshot.Recipient:
    is_bob = email == BOB
    fields = {"id": "rcp_2" if is_bob else "rcp_1", "status": "bounced" if is_bob else "delivered", **changes}
    return snapshot.Recipient(message_id="em_1", email=email, **fields)


def attempt(recipient_id: str = "rcp_1", *, verdict: str = "delivered", in_doubt: int = 0) -> snapshot.Attempt:
    return snapshot.Attempt("em_1", recipient_id, 1, verdict, "content", 250, "taken", in_doubt)


def event(event_id: str = "evt_1", **changes: object) -> snapshot.Event:
    is_bob = event_id == "evt_2"
    fields: dict[str, object] = {
        "delivery_id": "whd_2" if is_bob else "whd_1",
        "type": "email.bounced" if is_bob else "email.delivered",
        "recipient_id": "rcp_2" if is_bob else "rcp_1",
        "state": "succeeded",
        "attempt_count": 1,
        "body": BOUNCE_BODY if is_bob else BODY,
        **changes,
    }
    return snapshot.Event(id=event_id, message_id="em_1", **fields)  # type: ignore[arg-type] # by name, as they are above


def right() -> snapshot.Snapshot:
    """Nothing is wrong here."""
    return snapshot.Snapshot(
        submissions=[submission()],
        taken={ADA: 1},
        refused={BOB: 1},
        received={"evt_1": [BODY], "evt_2": [BOUNCE_BODY]},
        messages=[snapshot.Message("em_1", "http-0", "partial", 2)],
        recipients=[recipient(), recipient(BOB)],
        attempts=[attempt(), attempt("rcp_2", verdict="bounced")],
        ledger=[
            snapshot.Entry("reserve", -2, 2, "em_1"),
            snapshot.Entry("settle", 0, -1, "em_1"),
            snapshot.Entry("release", 1, -1, "em_1"),
        ],
        keys=[snapshot.Key("http-0", "em_1")],
        events=[event(), event("evt_2")],
        webhook_attempt_log=[
            snapshot.WebhookAttempt("whd_1", 1, 200, None),
            snapshot.WebhookAttempt("whd_2", 1, 200, None),
        ],
        hours=[snapshot.Hour(messages=1, recipients=2), snapshot.Hour(delivered=1, bounced=1)],
        starts=1,
        mail_attempts=13,
        webhook_attempts=7,
    )
