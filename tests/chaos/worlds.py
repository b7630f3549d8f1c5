"""A small world in which everything is as it should be, for tests that spoil it."""

from tests.chaos import customers, load, world

ADA, BOB = "fine.0.0@north.example.net", "gone.0.1@north.example.net"
BODY = b'{"id":"evt_1"}'
BOUNCE_BODY = b'{"id":"evt_2"}'


def customer() -> customers.Customer:
    return customers.Customer("acc_1", "mail@shop0.example.com", "key", ("name", "password"), "whsec_1")


def letter(**changes: object) -> load.Letter:
    """The one that was sent: to Ada, who got it, and to Bob, who does not exist."""
    written = load.Letter("http-0", customer(), load.HTTP, (ADA, BOB), message_id="em_1", tries=1)
    for name, value in changes.items():
        setattr(written, name, value)
    return written


def recipient(email: str = ADA, **changes: str) -> world.Recipient:
    is_bob = email == BOB
    fields = {"id": "rcp_2" if is_bob else "rcp_1", "status": "bounced" if is_bob else "delivered", **changes}
    return world.Recipient(message_id="em_1", email=email, **fields)


def attempt(recipient_id: str = "rcp_1", *, verdict: str = "delivered", in_doubt: int = 0) -> world.Attempt:
    return world.Attempt("em_1", recipient_id, 1, verdict, "content", 250, "taken", in_doubt)


def event(event_id: str = "evt_1", **changes: object) -> world.Event:
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
    return world.Event(id=event_id, message_id="em_1", **fields)  # type: ignore[arg-type] # by name, as they are above


def right() -> world.World:
    """Nothing is wrong here."""
    return world.World(
        letters=[letter()],
        taken={ADA: 1},
        refused={BOB: 1},
        told={"evt_1": [BODY], "evt_2": [BOUNCE_BODY]},
        messages=[world.Message("em_1", "http-0", "partial", 2)],
        recipients=[recipient(), recipient(BOB)],
        attempts=[attempt(), attempt("rcp_2", verdict="bounced")],
        ledger=[
            world.Entry("reserve", -2, 2, "em_1"),
            world.Entry("settle", 0, -1, "em_1"),
            world.Entry("release", 1, -1, "em_1"),
        ],
        keys=[world.Key("http-0", "em_1")],
        events=[event(), event("evt_2")],
        tellings=[world.Telling("whd_1", 1, 200, None), world.Telling("whd_2", 1, 200, None)],
        hours=[world.Hour(messages=1, recipients=2), world.Hour(delivered=1, bounced=1)],
        lives=1,
        mail_attempts=13,
        webhook_attempts=7,
    )
