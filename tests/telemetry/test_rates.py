"""What a process does in a second, with what its frontends do."""

from postroad.telemetry import metrics


def test_rates_are_the_growth_since_the_last_reading() -> None:
    counted, now = metrics.Metrics(), [10.0]
    counted.accepted.add("api")
    meter = metrics.RateMeter(counted, lambda: now[0])
    for _ in range(6):
        counted.accepted.add("api")
    counted.accepted.add("smtp")
    counted.recipients.add("google", "delivered")
    counted.recipients.add("others", "delivered")
    counted.recipients.add("others", "bounced")
    counted.attempts.add("retry", "rate", "greylisted")
    counted.attempts.add("delivered", "", "accepted")
    counted.others["frontend"] = {"postroad_messages_accepted_total": {("api",): [3]}}
    now[0] += 2
    measured = meter.read()
    assert {name: rate for name, rate in measured.items() if rate} == {
        "accepted": 5.0,
        "delivered": 1.0,
        "bounced": 0.5,
        "deferred": 0.5,
    }
    now[0] += 2
    assert set(meter.read().values()) == {0.0}


def test_a_frontend_that_was_started_anew_makes_no_rate_negative() -> None:
    counted, now = metrics.Metrics(), [10.0]
    counted.others["frontend"] = {"postroad_messages_accepted_total": {("api",): [300]}}
    meter = metrics.RateMeter(counted, lambda: now[0])
    counted.others.clear()
    now[0] += 1
    assert meter.read()["accepted"] == 0.0
