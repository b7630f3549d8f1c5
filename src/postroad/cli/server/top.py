"""`postroad top`: the live state of an installation in a terminal, until Ctrl-C, over `/v1/operator`.

Rates are the differences between two answers. On a terminal the screen is drawn again at every refresh and fits into
it; elsewhere each refresh is a block of lines, or with `--json` one line.
"""

import datetime as dt
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from postroad.cli.framework import output, server_command
from postroad.network.http import api_client

# Rows of a table where the output is no terminal.
ROWS: Final = 10
# Lines of the screen that are not rows of tables.
HEAD_LINES: Final = 20
MIN_ROWS: Final = 3
# To the upper left corner, and clear from there.
REDRAW: Final = "\x1b[H\x1b[J"
COUNTED: Final = ("accepted", "delivered", "deferred", "bounced", "failed")

State = dict[str, Any]


@click.command(
    "top",
    params=[
        click.Option(
            ["--interval"],
            type=click.FloatRange(min=0.5, max=3600),
            default=2.0,
            show_default=True,
            help="Seconds between two refreshes.",
        ),
        click.Option(["--once"], is_flag=True, help="Print the state once, and stop."),
        server_command.URL,
        *server_command.INSTALLATION,
        click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object per line."),
    ],
)
def top(*, interval: float, once: bool, as_json: bool, **chosen: Any) -> None:
    """Show the live state of an installation: rates, queue, destinations and hosts, until Ctrl-C."""
    server = server_command.connect(chosen, needs_account=False)
    is_screen = sys.stdout.isatty() and not as_json and not once
    if not is_screen:
        click.echo(f"Server: {server.url}.{'' if once else ' Press Ctrl-C to stop.'}", err=True)
    reader = Reader(server)
    with server_command.until_interrupted(server.close):
        for state in server_command.follow(lambda: [reader.read()], seconds=interval, is_quiet=is_screen):
            click.echo(json.dumps(state) if as_json else _drawn(state, server.url, is_screen=is_screen))
            if once:
                return


class Reader:
    """Reads the state, and remembers the last one for the rates."""

    def __init__(self, server: api_client.Client) -> None:
        self._server = server
        self._before: tuple[dt.datetime, Mapping[str, Any]] | None = None
        self._rates: dict[str, float | None] = dict.fromkeys(COUNTED)

    def read(self) -> State:
        """The state now."""
        queue = self._server.get("/v1/operator/queue")
        providers = self._server.get("/v1/operator/providers")
        health = self._server.get("/v1/operator/health")
        self._measure(queue)
        return {
            "at": health.get("now"),
            "rates": self._rates,
            "queue": {
                name: queue.get(name) for name in ("counted_at", "recipients", "states", "ages", "oldest_at", "holds")
            },
            "domains": server_command.objects(queue.get("domains")),
            "accounts": server_command.objects(queue.get("accounts")),
            "causes": server_command.objects(queue.get("causes")),
            "providers": server_command.objects(providers.get("providers")),
            "processes": server_command.objects(health.get("processes")),
            "store": health.get("store"),
        }

    def _measure(self, queue: Mapping[str, Any]) -> None:
        """The rates since the numbers before. They are counts of two hours: at the full hour they start again."""
        counted_at, totals = queue.get("counted_at"), queue.get("last_hours")
        if not isinstance(counted_at, str) or not isinstance(totals, dict):
            return
        at = dt.datetime.fromisoformat(counted_at)
        if self._before is not None and at > self._before[0]:
            seconds = (at - self._before[0]).total_seconds()
            differences = {name: totals.get(name, 0) - self._before[1].get(name, 0) for name in COUNTED}
            is_reset = any(difference < 0 for difference in differences.values())
            self._rates = {
                name: None if is_reset else round(difference / seconds, 1) for name, difference in differences.items()
            }
        if self._before is None or at > self._before[0]:
            self._before = (at, totals)


def _drawn(state: State, url: str, *, is_screen: bool) -> str:
    if not is_screen:
        return f"{screen(state, url, rows=ROWS)}\n"
    columns, lines = shutil.get_terminal_size()
    shown = screen(state, url, rows=max(MIN_ROWS, (lines - HEAD_LINES) // 4)).splitlines()
    return REDRAW + "\n".join(line[:columns] for line in shown[: lines - 1])


def screen(state: State, url: str, *, rows: int) -> str:
    """The state as text; each table has at most `rows` rows."""
    queue = state["queue"]
    states = queue["states"] or {}
    head = [
        f"Postroad {output.printable(url)}  {output.printable(str(state['at']))}",
        "Per second: " + ", ".join(f"{name} {_number(state['rates'][name])}" for name in COUNTED),
        (
            f"Queue: {_number(queue['recipients'])} {'recipient' if queue['recipients'] == 1 else 'recipients'}, "
            f"oldest {_age(queue['oldest_at'], state['at'])}"
        ),
        "  "
        + ", ".join(
            f"{name} {_number(states.get(name))}" for name in ("ready", "waiting", "sending", "scheduled", "held")
        ),
    ]
    if queue["counted_at"] is None:
        head.append("The queue is being counted.")
    busy = sorted(state["providers"], key=_urgency)
    oldest = sorted(state["accounts"], key=lambda account: str(account.get("oldest_at")))
    tables = [
        _table(
            ("domain", "recipients"),
            [(domain.get("domain"), domain.get("recipients")) for domain in state["domains"]],
            rows,
        ),
        _table(
            ("account", "recipients", "oldest"),
            [
                (
                    account.get("name") or account.get("account_id"),
                    account.get("recipients"),
                    _age(account.get("oldest_at"), state["at"]),
                )
                for account in oldest
            ],
            rows,
        ),
        _table(("provider", "state", "delivered", "deferred", "why"), [_provider(provider) for provider in busy], rows),
        _table(
            ("host", "process", "version", "accepted/s", "delivered/s", "last report", "roles"),
            [
                (
                    process.get("host"),
                    process.get("process_id"),
                    str(process.get("version")).partition("+")[0],
                    (process.get("rates") or {}).get("accepted"),
                    (process.get("rates") or {}).get("delivered"),
                    _age(process.get("seen_at"), state["at"]) + ("" if process.get("alive") else " (silent)"),
                    ",".join(map(str, process.get("roles") or ())),
                )
                for process in state["processes"]
            ],
            rows,
        ),
    ]
    return "\n".join([*head, *(f"\n{table}" for table in tables)])


def _table(titles: Sequence[str], found: Sequence[Sequence[object]], rows: int) -> str:
    return output.printable_table(titles, found[:rows], empty=f"{titles[0].capitalize()}: none")


def _urgency(provider: Mapping[str, Any]) -> tuple[int, str]:
    order = ("blocked", "paused", "slowed", "open")
    state = str(provider.get("state"))
    return (order.index(state) if state in order else len(order), str(provider.get("name")))


def _provider(provider: Mapping[str, Any]) -> tuple[object, ...]:
    counts = provider.get("last_hours") or {}
    change = provider.get("change") or {}
    errors = [str(host.get("last_error")) for host in server_command.objects(provider.get("hosts"))]
    why = f"by an operator: {change['reason']}" if change.get("paused") else (errors or [""])[0]
    return provider.get("name"), provider.get("state"), counts.get("delivered", 0), counts.get("deferred", 0), why


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int | float) else "-"


def _age(since: object, now: object) -> str:
    """The time between two timestamps, in its largest unit."""
    if not isinstance(since, str) or not isinstance(now, str):
        return "-"
    seconds = max(0, int((dt.datetime.fromisoformat(now) - dt.datetime.fromisoformat(since)).total_seconds()))
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"
