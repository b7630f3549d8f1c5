"""`make bench-submission`: how many messages a second are durably accepted over SMTP by Postroad and its peers.

5 KB messages come over persistent sessions, or are made anew for each message. Each peer has as many sessions as
suit it, Postroad 128 and the others 20; Postroad is measured with theirs as well. Postroad demands that clients log in,
which `smtp-source` cannot: its clients are the sessions of `injectors/smtp_sessions.py`, which say the same words and
AUTH before them. Postfix is measured with both, without AUTH: with `smtp-source`, which costs less and is what the
ratio is to, and with the same clients; the other mail servers with `smtp-source`. A 250 counts when the message is on
disk; a row says so where a peer syncs less. Rounds alternate between the peers, each on an empty store, and medians are
reported. After each round the stored messages are counted: one for each 250, or the round has a problem.
"""

import argparse
import contextlib
import dataclasses
import os
import pathlib
import sys
import typing

from benchmarks import failures, figures, goal_checks, machine, measure, message, report, session
from benchmarks.injectors import injection, smtp, smtp_sessions
from benchmarks.peers import mail_servers, postgres, postroad, process

GOAL = 4.0
ONE_MESSAGE = ", one message a connection"
# Enough for a mail server to have all its workers and for a rate to be seen.
WARM_UP_MESSAGES = 2000


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A peer and what its clients do; its `server` is a store of Postroad or a mail server."""

    name: str
    keep: bool
    server: str
    same_clients: bool = False
    same_sessions: bool = False

    @property
    def reference(self) -> str:
        """The Postfix that it is compared with."""
        return "Postfix" if self.keep else f"Postfix{ONE_MESSAGE}"


def _variants(*, keep: bool) -> dict[str, Variant]:
    key, words = ("", "") if keep else ("-single", ONE_MESSAGE)
    return {
        f"sqlite{key}": Variant(name=f"Postroad, SQLite{words}", keep=keep, server="sqlite"),
        f"sqlite-same{key}": Variant(
            name=f"Postroad, SQLite, sessions as for Postfix{words}", keep=keep, server="sqlite", same_sessions=True
        ),
        f"postgresql{key}": Variant(name=f"Postroad, PostgreSQL{words}", keep=keep, server="postgresql"),
        f"postfix{key}": Variant(name=f"Postfix{words}", keep=keep, server="postfix"),
        f"postfix-same{key}": Variant(
            name=f"Postfix, the same clients{words}", keep=keep, server="postfix", same_clients=True
        ),
    }


OTHERS = {
    key: Variant(name=peer.NAME, keep=True, server=key)
    for key, peer in mail_servers.ALL.items()
    if key != mail_servers.REFERENCE
}
VARIANTS = _variants(keep=True) | OTHERS | _variants(keep=False)
Send = typing.Callable[[int], injection.Injection]


class Bench:
    """One run: its options, its folder, and the servers that live through all its rounds."""

    def __init__(
        self, options: argparse.Namespace, *, folder: pathlib.Path, database: postgres.Postgres | None
    ) -> None:
        self._options = options
        self._folder = folder
        self._database = database
        self._mime = folder / "message.eml"
        self._mime.write_bytes(message.as_mime(options.content))

    def round(self, variant: Variant) -> figures.Round:
        """One round, on an empty store and a quiet disk."""
        os.sync()
        if variant.server in mail_servers.ALL:
            return self._mail_server_round(variant)
        if variant.server == "sqlite":
            return self._postroad_round(variant, database_url=f"sqlite:///{self._folder}/service/mail.db")
        assert self._database is not None
        with self._database.database("postroad_bench") as url:
            return self._postroad_round(variant, database_url=url, store_pid=self._database.pid)

    def _postroad_round(self, variant: Variant, *, database_url: str, store_pid: int | None = None) -> figures.Round:
        port = process.free_port()
        logins: list[smtp_sessions.Login] = []

        def prepare(configuration: pathlib.Path) -> None:
            logins.append(smtp_sessions.Login(*postroad.create_login(configuration)))

        with postroad.running(
            self._folder / "service",
            database_url=database_url,
            work=postroad.SmtpSubmission(smtp_port=port),
            prepare=prepare,
        ) as service:
            processes = {"service": service.pids} | ({"store": (store_pid,)} if store_pid is not None else {})
            send = self._clients(variant, port=port, login=logins[0])
            sent, window, answered = self._sent(send, processes)
            stored, findings = service.verify()
        return _figures(variant, sent=sent, window=window, problems=[*_differences(answered, stored), *findings])

    def _mail_server_round(self, variant: Variant) -> figures.Round:
        with mail_servers.ALL[variant.server].running(self._folder / variant.server) as server:
            send = self._clients(variant, port=server.port, login=None)
            sent, window, answered = self._sent(send, {"service": (server.pid,)})
            problems = _differences(answered, server.stored())
        return _figures(variant, sent=sent, window=window, problems=problems)

    def _clients(self, variant: Variant, *, port: int, login: smtp_sessions.Login | None) -> Send:
        is_own = login is not None and not variant.same_sessions
        sessions = self._options.postroad_sessions if is_own else self._options.sessions
        mime, keep = self._mime, variant.keep
        if login is not None or variant.same_clients:
            return lambda messages: smtp_sessions.send(
                port=port, messages=messages, sessions=sessions, mime=mime, login=login, keep=keep
            )
        return lambda messages: smtp.send(port=port, messages=messages, sessions=sessions, mime=mime, keep=keep)

    def _sent(
        self, send: Send, processes: typing.Mapping[str, tuple[int, ...]]
    ) -> tuple[injection.Injection, measure.Window, int]:
        """Warm up, and send for the seconds of a round; also how many were accepted in all."""
        warm_up = send(WARM_UP_MESSAGES)
        count = max(int(warm_up.accepts_per_second * self._options.seconds), 1)
        with measure.Window(dict(processes)) as window:
            sent = send(count)
        return sent, window, warm_up.sent + sent.sent


def _figures(
    variant: Variant, *, sent: injection.Injection, window: measure.Window, problems: typing.Sequence[str]
) -> figures.Round:
    return figures.of_round(
        variant.name,
        messages_per_second=sent.accepts_per_second,
        sent=sent,
        cost=window.cost(),
        cores=os.cpu_count() or 1,
        problems=problems,
    )


def _differences(answered: int, stored: int) -> list[str]:
    return [] if answered == stored else [f"{answered} messages were accepted, but {stored} are stored"]


def main() -> int:
    """Run, print, write; 0 when all is well, 1 when a message was refused or lost, 2 when a peer is missing."""
    options = _options()
    gaps, names = _runnable(options.peers)
    for gap in gaps:
        print(f"!!! INCOMPLETE: {gap}", file=sys.stderr)
    with session.work_folder(options.folder) as folder:
        gaps += session.in_memory(folder)
        result = _run(options, names=names, folder=folder, gaps=gaps)
    return session.finish(result, folder=options.results, name="submission")


def _run(
    options: argparse.Namespace, *, names: typing.Sequence[str], folder: pathlib.Path, gaps: list[str]
) -> report.Report:
    facts = machine.facts() | {"file system": machine.file_system(folder)}
    rounds: list[tuple[Variant, figures.Round]] = []
    with contextlib.ExitStack() as stack:
        wanted = any(VARIANTS[name].server == "postgresql" for name in names)
        database = stack.enter_context(session.database(folder, facts, wanted=wanted))
        facts |= mail_servers.facts(_mail_servers(names))
        bench = Bench(options, folder=folder, database=database)
        for number in range(1, options.rounds + 1):
            for name in names:
                with failures.into(gaps, what=f"round {number} of {name} did not end"):
                    one = bench.round(VARIANTS[name])
                    rounds.append((VARIANTS[name], one))
                    print(f"round {number}, {one.peer}: {one.messages_per_second:,.0f}/s", *one.problems, flush=True)
    groups = {
        reference: figures.summarise(
            [run for variant, run in rounds if variant.reference == reference], reference=reference
        )
        for reference in dict.fromkeys(variant.reference for variant, _ in rounds)
    }
    return report.Report(
        title="Durable accepts over SMTP",
        description=_description(options),
        facts=facts,
        summaries=[summary for group in groups.values() for summary in group],
        rounds=[run for _, run in rounds],
        gaps=gaps,
        goals=[
            goal
            for reference, group in groups.items()
            for goal in goal_checks.of_ratios(group, reference=reference, times=GOAL)
        ],
    )


def _description(options: argparse.Namespace) -> str:
    size = len(message.as_mime(options.content))
    return (
        f"Messages durably accepted over SMTP, a second: text+html ({options.content}; {size:,} bytes of MIME), one "
        f"recipient each, over persistent sessions, or one connection for each message. Each peer has as many at "
        f"once as suit it: Postroad {options.postroad_sessions}, and {options.sessions} where it says so; the others "
        f"{options.sessions}. "
        "Postroad's clients log in (AUTH PLAIN) and are a process in Python; those of the others are smtp-source and "
        "do not log in. 'The same clients' are the ones of Postroad, without AUTH. TLS is not used. Medians of "
        f"{options.rounds} alternating rounds of about {options.seconds:g} s, after a warm-up, each on an empty store. "
        "Every 250 was checked against the store. The ratio is to Postfix with smtp-source. Latency is from MAIL to "
        "the 250 of the message. Memory is the peak of the service and its store, shared pages counted once."
    )


def _runnable(wanted: typing.Sequence[str]) -> tuple[list[str], list[str]]:
    servers = _mail_servers(wanted)
    if servers and (reason := smtp.missing()):
        absent = dict.fromkeys(servers, f"no mail server was measured. {reason}")
    else:
        absent = mail_servers.gaps(servers)
    return list(dict.fromkeys(absent.values())), [name for name in wanted if VARIANTS[name].server not in absent]


def _mail_servers(names: typing.Iterable[str]) -> list[str]:
    """The mail servers of these variants, each once."""
    return list(dict.fromkeys(VARIANTS[name].server for name in names if VARIANTS[name].server in mail_servers.ALL))


def _options() -> argparse.Namespace:
    parser = session.parser("submission", "Durable accepts over SMTP.", peers=VARIANTS)
    parser.add_argument("--seconds", type=float, default=10, help="sending time of a round, about (10)")
    session.add_mail_options(parser)
    parser.add_argument(
        "--postroad-sessions", type=int, default=128, help="SMTP sessions of Postroad at the same time (128)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
