"""What the first line of Health says: checks, processes, holds, providers, source addresses and a backlog."""

from typing import Any

from postroad import config
from postroad.dashboard.framework import verdicts
from postroad.dashboard.operator import alerts
from postroad.services.operations import destinations
from postroad.services.operations.checks import findings, table
from postroad.services.queue import sources
from postroad.storage.mail import delivery_controls, queue_views
from postroad.storage.operations import processes

NOW = 1_800_000_000_000_000
MINUTE = 60_000_000


def found(**facts: Any) -> list[verdicts.Alert]:
    return list(alerts.alerts(alerts.AlertFacts(now=NOW, **facts)))


def titles(**facts: Any) -> list[str]:
    return [alert.title for alert in found(**facts)]


def destination(name: str, *states: str, paused: int = 0, of: str = "") -> destinations.Destination:
    override = delivery_controls.Override(of or name, paused, 5, None, None, "", NOW, "blocked us") if paused else None
    reported = [processes.QueueStatus("mail1-7", name, state, "421 busy", NOW, NOW) for state in states]
    return destinations.Destination(name, {}, override, reported)


def test_nothing_is_wrong_without_facts() -> None:
    assert titles() == []


def test_checks_are_one_line_for_each_level() -> None:
    def result(name: str, *states: findings.State) -> table.Result:
        return table.Result(name, [findings.Finding(state, "x") for state in states], "")

    error, warning, ok = findings.State.ERROR, findings.State.WARNING, findings.State.OK
    checks = [result("dnssec", error, warning), result("disk", ok), *(result(f"port_{at}", warning) for at in range(4))]
    assert [(alert.kind, alert.title, alert.text) for alert in found(checks=checks)] == [
        ("bad", "1 check failed", "dnssec"),
        ("warn", "4 checks warned", "port 0, port 1, port 2, …"),
    ]


def test_a_silent_process_and_a_hold_say_since_when() -> None:
    silent = processes.Process("mail1-7", "mail1", 7, ("api",), "1", NOW, NOW - MINUTE)
    held = [
        delivery_controls.Hold("", "", "restored", NOW),
        delivery_controls.Hold("acc_1", "example.org", "asked to", NOW),
    ]
    shown = found(silent=[silent], holds=held, names={"acc_1": "Shop"})
    assert [(alert.kind, alert.title, alert.since) for alert in shown] == [
        ("bad", "mail1-7 has been silent", NOW - MINUTE),
        ("bad", "All mail is held", NOW),
        ("warn", "Mail to example.org of account Shop is held", NOW),
    ]


def test_changed_limits_and_suspended_accounts_are_named_without_being_problems() -> None:
    override = delivery_controls.Override("google", 0, 5, None, None, "", NOW, limits_reason="Rate limited")
    google = destinations.Destination("google", {}, override, ())
    shown = found(provider_queues=[google], suspended=["Shop", "Bakery", "Press", "Bank"])
    assert [(alert.kind, alert.title, alert.since, alert.text, alert.path) for alert in shown] == [
        ("", "The limits of Google are changed", NOW, "Rate limited", "/operator/providers/google"),
        ("", "Accounts are suspended", None, "Shop, Bakery, Press, …", "/operator/accounts?state=suspended"),
    ]
    assert titles(suspended=["Shop"]) == ["An account is suspended"]
    blocked = destinations.Destination("others", {}, override, ())
    assert titles(provider_queues=[blocked]) == [], "of another provider"


def test_a_provider_has_one_alert_and_single_hosts_only_if_an_operator_paused_them() -> None:
    listed = [
        destination("google", "blocked", paused=1),
        destination("microsoft", "paused"),
        destination("yahoo", "blocked"),
        destination("apple", "slowed"),
        destination("upstream:relay", "blocked"),
        destination("mx.example.org", "blocked"),
        destination("mx.example.net", paused=1),
        destination("mx.example.com", paused=1, of="others"),
    ]
    shown = found(provider_queues=listed, deferring=[verdicts.Deferring("yahoo", 50, NOW - MINUTE)])
    assert [(alert.title, alert.since, alert.path.removeprefix("/operator/providers/")) for alert in shown] == [
        ("Google is paused", NOW, "google"),
        ("Microsoft asked us to slow down", None, "microsoft"),
        ("Yahoo is deferring 50%", NOW - MINUTE, "yahoo"),
        ("Upstream relay does not answer", None, "upstream%3Arelay"),
        ("mx.example.net is paused", NOW, "mx.example.net"),
    ]


def test_paused_source_addresses_are_shown_and_warming_ones_are_not() -> None:
    def state(provider: str, name: delivery_controls.SourceStatus) -> delivery_controls.SourceState:
        return delivery_controls.SourceState("out1", provider, name, "blocked", "", NOW)

    paused, warming = delivery_controls.SourceStatus.PAUSED, delivery_controls.SourceStatus.WARMING
    view = sources.SourceView(
        config.Source(name="out1", address="192.0.2.1"), [state("google", paused), state("", warming)], []
    )
    (alert,) = found(addresses=[view])
    assert (alert.title, alert.text) == ("The address out1 is paused for Google", "blocked")


def test_mail_that_is_due_for_half_an_hour_is_a_backlog() -> None:
    def total(state: str, minutes: int) -> queue_views.Total:
        return queue_views.Total(state, 0, 600, NOW, NOW - minutes * MINUTE)

    assert titles(totals=[total("ready", 29), total("held", 99), total("waiting", 99)]) == []
    (alert,) = found(totals=[total("ready", 30), total("ready", 1)])
    assert (alert.kind, alert.title) == ("bad", "1,200 recipients are due but not being tried")
    assert alert.since == NOW - 30 * MINUTE
