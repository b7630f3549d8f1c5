"""What a message costs at one size of one range: CPU time, memory, and the slowest query.

In all ranges but one, messages of 5 KB come over HTTP and are delivered to `smtp-sink`. The store is filled first; then
several windows of the same length are measured on it, and their median counts. Destinations are found in DNS: mail for
all of them lies in the store when the service starts, and there is one window.
"""

import argparse
import contextlib
import dataclasses
import os
import pathlib
import statistics
import sys
import typing

from benchmarks import (
    backlog,
    deliveries,
    destinations,
    growth_tables,
    large_account,
    many_accounts,
    measure,
    message,
    query_times,
)
from benchmarks.peers import mail_hosts, postgres, postroad, smtp_sink, stores

MEBIBYTE = 2**20
# Of the pile for many destinations, before the window begins.
WARM_UP_SHARE = 10
# For one destination, at least: a look-up in DNS serves all of them.
MAILS_EACH = 10

Prepare = typing.Callable[[pathlib.Path, stores.Store], None]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """One run: its options, its folder, and the database server that lives through all its rounds."""

    options: argparse.Namespace
    folder: pathlib.Path
    database: postgres.Postgres | None

    def recipients(self, store: stores.Name, size: int) -> growth_tables.Figure:
        """Messages with so many recipients each."""
        return self._over_http("recipients", store, size, recipients=size)

    def accounts(self, store: stores.Name, size: int) -> growth_tables.Figure:
        """So many accounts that send in turns."""
        senders = self.folder / "senders"
        return self._over_http(
            "accounts",
            store,
            size,
            prepare=lambda _, filled: many_accounts.fill(filled, senders, accounts=size),
            senders=senders,
            least=size,
        )

    def stored(self, store: stores.Name, size: int) -> growth_tables.Figure:
        """So many messages of the last thirty days, of the account that sends."""
        return self._over_http(
            "stored",
            store,
            size,
            prepare=lambda configuration, filled: _fill(configuration, filled, messages=size),
            is_verified=False,
        )

    def processes(self, store: stores.Name, size: int) -> growth_tables.Figure:
        """So many delivery processes beside the one that accepts."""
        return self._over_http(
            "processes", store, size, processes=(("api", "maintenance"), *(("delivery",) for _ in range(size)))
        )

    def destinations(self, store: stores.Name, size: int) -> growth_tables.Figure:
        """So many domains, each with an MX host of its own; every one gets as many messages, ten or more."""
        messages = max(self.options.messages, MAILS_EACH * size)
        folder = self.folder / "service"
        with contextlib.ExitStack() as stack:
            hosts = stack.enter_context(mail_hosts.behind_one_address(self.folder / "hosts"))
            own = stack.enter_context(stores.empty(store, folder=folder, server=self.database))

            def prepare(_: pathlib.Path) -> None:
                domain = mail_hosts.domain_expression(size, with_dead=False)
                mime = message.as_mime("ascii").replace(b"\n", b"\r\n").decode()
                backlog.queue_ready(own, messages=messages, domain=domain, mime=mime)
                os.sync()

            exchange = postroad.Exchange(mx_port=hosts.port, name_server=hosts.name_server)
            service = stack.enter_context(self._running(own, work=exchange, prepare=prepare))
            under_way = destinations.DeliveryRound(hosts=hosts, store=own, service=service, each=messages)
            under_way.wait(arrived=messages // WARM_UP_SHARE)
            before = under_way.arrived()
            with measure.Window(_processes(service, own)) as window:
                under_way.wait(arrived=messages)
            return self._figure(
                "destinations",
                store,
                size,
                costs=[(window.cost(), messages - before)],
                memory=measure.tree_peak_bytes(*service.pids),
                problems=under_way.differences(),
                stop=stack,
            )

    def _over_http(
        self,
        name: str,
        store: stores.Name,
        size: int,
        *,
        prepare: Prepare | None = None,
        processes: postroad.Processes = postroad.API_AND_DELIVERY,
        recipients: int = 1,
        senders: pathlib.Path | None = None,
        least: int = 0,
        is_verified: bool = True,
    ) -> growth_tables.Figure:
        """Windows of at least so many messages on one store, after a warm-up of as many."""
        requests = max(self.options.messages, least) // recipients
        problems: list[str] = []
        with contextlib.ExitStack() as stack:
            sink = stack.enter_context(smtp_sink.running(self.folder / "sink"))
            own = stack.enter_context(stores.empty(store, folder=self.folder / "service", server=self.database))
            service = stack.enter_context(
                self._running(
                    own,
                    work=postroad.Relay(next_hop_port=sink.port, sign=False, processes=processes),
                    prepare=lambda configuration: prepare(configuration, own) if prepare else None,
                )
            )
            contender = deliveries.OnPostroad(
                service=service,
                store=own,
                folder=self.folder,
                connections=self.options.connections,
                content="ascii",
                recipients=recipients,
                senders=senders,
            )
            costs = []
            for number in range(self.options.windows + 1):
                os.sync()
                with measure.Window(_processes(service, own)) as window:
                    done = deliveries.deliver(
                        contender, sink, run=f"window-{number}", messages=requests, recipients=recipients
                    )
                costs.append((window.cost(), requests * recipients))
                if done.sent.failed:
                    problems.append(f"{done.sent.failed} messages were refused or not answered")
            problems += deliveries.arrival_differences(sink, delivered=len(costs) * requests * recipients)
            if is_verified:
                problems += service.verify()[1]
            return self._figure(
                name,
                store,
                size,
                costs=costs[1:],  # the first window warms up
                memory=measure.tree_peak_bytes(*service.pids),
                problems=problems,
                stop=stack,
            )

    def _running(
        self, store: stores.Store, *, work: postroad.Work, prepare: postroad.Prepare
    ) -> contextlib.AbstractContextManager[postroad.Postroad]:
        """The service as one process, or as many as the work says; each times its queries."""
        (self.folder / "queries").mkdir(exist_ok=True)
        return postroad.running(
            self.folder / "service",
            database_url=store.url,
            work=work,
            prepare=prepare,
            program=(sys.executable, "-m", "benchmarks.query_times", str(self.folder / "queries")),
            frontends=1,
        )

    def _figure(
        self,
        name: str,
        store: stores.Name,
        size: int,
        *,
        costs: typing.Sequence[tuple[measure.Cost, int]],
        memory: int,
        problems: typing.Sequence[str],
        stop: contextlib.ExitStack,
    ) -> growth_tables.Figure:
        """The medians of the windows. Queries are known when the service has stopped."""
        stop.close()
        slowest = query_times.slowest(self.folder / "queries")
        for path in (self.folder / "queries").iterdir():
            path.unlink()
        by_part = {
            part: statistics.median(cost.cpu_seconds.get(part, 0.0) * 1e6 / messages for cost, messages in costs)
            for part in ("service", "store")
        }
        return growth_tables.Figure(
            range=name,
            store=store,
            size=size,
            messages=sum(messages for _, messages in costs),
            service_microseconds=by_part["service"],
            store_microseconds=by_part["store"],
            memory_mebibytes=memory / MEBIBYTE,
            query=slowest.name if slowest else "",
            query_milliseconds=slowest.median if slowest else 0.0,
            problems=tuple(problems),
        )


def _fill(configuration: pathlib.Path, store: stores.Store, *, messages: int) -> None:
    large_account.fill(configuration, store, messages=messages, queued=0)


def _processes(service: postroad.Postroad, store: stores.Store) -> typing.Mapping[str, typing.Sequence[int]]:
    return {"service": service.pids} | ({"store": (store.pid,)} if store.pid is not None else {})
