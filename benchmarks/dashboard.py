"""`make bench-dashboard`: how quick the dashboard answers when an account has sent a million messages within a month.

The store is filled (benchmarks/large_account.py), `postroad serve` is started on it as an operator starts it, somebody
logs in and opens pages, one after the other: each a few times to warm up and then thirty times. What counts is the time
at the server, from the request's first byte until its answer is made, as the service's own log has it. The first answer
to each request is reported too: its caches are empty. An answer other than 200 fails the run.
"""

import argparse
import contextlib
import dataclasses
import http.client
import json
import os
import pathlib
import re
import statistics
import time
import typing
import urllib.parse

from benchmarks import large_account, machine, session
from benchmarks.peers import postgres, postroad, process, stores

GOAL_MILLISECONDS = 300.0
WARM_UP = 3
LOG_SECONDS = 10.0
PEERS = ("sqlite", "sqlite-backlog", "postgresql", "postgresql-backlog")
FULL = {"messages": 1_000_000, "times": 30, "peers": list(PEERS)}
QUEUED = 2_000
OLDER = re.compile(rb'href="(/messages\?[^"]*cursor=[^"]+)"')
ROLES: postroad.Processes = (("api", "maintenance"),)

# What is asked: its name in the table, and the path. Times are days of the month that was filled.
PAGES = (
    ("overview, 24 hours", "/?period=24h"),
    ("overview, 7 days", "/?period=7d"),
    ("overview, 30 days", "/?period=30d"),
    ("overview, 90 days", "/?period=90d"),
    ("overview, 30 days of a common tag", f"/?period=30d&tag={large_account.COMMON_TAG}"),
    ("failures, 30 days", "/failures?period=30d"),
    ("messages", "/messages"),
    ("messages, next page", "{next_page}"),
    ("messages, a page from the depth", "{deep_page}"),
    ("one message", "/messages/{message}"),
    ("webhook", "/webhook"),
    ("suppressions", "/suppressions"),
    ("credits", "/credits"),
    ("audit-log", "/audit-log"),
)
# What is typed into the search box. The worst are those whose words are common alone and never meet.
SEARCHES = (
    "to:{rare_recipient}",
    "to:{common_recipient}",
    "to:nobody@example.org",
    "from:{rare_sender}",
    "from:{common_sender}",
    "from:nobody@example.com",
    "tag:{rare_tag}",
    "tag:{common_tag}",
    "tag:none",
    "status:queued",
    "status:delivered",
    "status:partial",
    "status:failed",
    "id:{message}",
    "after:{middle}",
    "before:{early}",
    "after:{early} before:{middle}",
    "status:failed before:{early}",
    "tag:{common_tag} status:failed",
    "tag:{rare_tag} status:queued",
    "from:{common_sender} tag:newsletter",
    "from:{rare_sender} status:failed",
    "to:{common_recipient} status:partial",
    "to:{common_recipient} from:{rare_sender}",
    "to:{common_recipient} tag:{common_tag} status:failed before:{early}",
    "from:{common_sender} tag:{common_tag} status:queued before:{early}",
    # By what became of a recipient. The worst are causes and replies that none of those who were refused have.
    "status:bounced",
    "status:bounced to:@gmail.com after:{yesterday} before:{today}",
    "status:deferred OR status:expired",
    "status:suppressed",
    "outcome:failed provider:yahoo",
    "cause:address",
    "cause:mailbox_full",
    "code:550 to:@icloud.com",
    "code:5.7.1",
    # By a part of an address or id, which no index has in the order of time.
    "to:@company-7.example",
    "to:person-19999*",
    "to:person-1*",
    "to:nobody*",
    "from:@example.com",
    "from:nobody*",
    "id:{message_prefix}*",
    # What is excluded, and alternatives.
    "-tag:{common_tag} -tag:newsletter -status:delivered",
    "-to:@gmail.com -from:{common_sender} source:api",
    "status:bounced OR tag:{rare_tag} -to:@gmail.com",
    "zebra OR to:{rare_recipient} OR cause:mailbox_full",
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """How long one page took at the server, in milliseconds, of one peer."""

    peer: str
    page: str
    first: float
    p50: float
    p95: float
    slowest: float
    kilobytes: float
    problem: str = ""

    @property
    def is_quick(self) -> bool:
        """Whether every response met the goal; the first one is reported but not counted: it fills the caches."""
        return not self.problem and self.slowest < GOAL_MILLISECONDS


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the browser got: which request it was, how it ended, and the page."""

    request_id: str
    status: int
    page: bytes


class Browser:
    """Somebody who is logged in, over one kept connection."""

    def __init__(self, port: int, *, password: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self._headers = {"Origin": f"http://127.0.0.1:{port}"}
        form = urllib.parse.urlencode({"email": large_account.EMAIL, "password": password})
        headers = {**self._headers, "Content-Type": "application/x-www-form-urlencoded"}
        self._connection.request("POST", "/login", body=form, headers=headers)
        answer = self._connection.getresponse()
        answer.read()
        cookies = [value.split(";")[0] for value in answer.headers.get_all("Set-Cookie") or ()]
        if answer.status != http.HTTPStatus.SEE_OTHER or not cookies:
            raise RuntimeError(f"the log-in was answered with {answer.status}")
        self._headers["Cookie"] = "; ".join(cookies)

    def get(self, path: str) -> Answer:
        """Open a page."""
        self._connection.request("GET", path, headers=self._headers)
        answer = self._connection.getresponse()
        return Answer(request_id=answer.headers["X-Request-ID"], status=answer.status, page=answer.read())

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


def measure(
    peer: str, *, folder: pathlib.Path, database: postgres.Postgres | None, options: argparse.Namespace
) -> list[Figure]:
    """Fill a store, serve it, and open every page."""
    filled: list[large_account.Filled] = []
    with contextlib.ExitStack() as stack:
        kind: stores.Name = "SQLite" if peer.startswith("sqlite") else "PostgreSQL"
        store = stack.enter_context(stores.empty(kind, folder=folder, server=database))

        def prepare(configuration: pathlib.Path) -> None:
            began = time.monotonic()
            queued = options.messages if peer.endswith("-backlog") else min(QUEUED, options.messages)
            filled.append(large_account.fill(configuration, store, messages=options.messages, queued=queued))
            os.sync()
            print(f"{peer}: filled in {time.monotonic() - began:.0f} s", flush=True)

        pages = postroad.Pages(processes=ROLES)
        service = stack.enter_context(postroad.running(folder, database_url=store.url, work=pages, prepare=prepare))
        log = folder / "postroad-1.log"
        browser = stack.enter_context(contextlib.closing(Browser(service.port, password=filled[0].password)))
        return [
            _figure(peer, name, path, browser=browser, log=log, times=options.times)
            for name, path in questions(filled[0], browser)
        ]


def questions(filled: large_account.Filled, browser: Browser) -> typing.Iterator[tuple[str, str]]:
    """The names of all pages and their paths."""
    early = _date(filled.start, days=5)
    words = {
        "message": filled.message_id,
        "message_prefix": filled.message_id[:12],
        "yesterday": _date(filled.start, days=large_account.DAYS - 1),
        "today": _date(filled.start, days=large_account.DAYS),
        "next_page": _older(browser, "/messages"),
        "deep_page": _older(browser, f"/messages?search=before:{early}"),
        "middle": _date(filled.start, days=large_account.DAYS // 2),
        "early": early,
        "rare_recipient": large_account.RARE_RECIPIENT,
        "common_recipient": large_account.COMMON_RECIPIENT,
        "rare_sender": large_account.RARE_SENDER,
        "common_sender": large_account.COMMON_SENDER,
        "rare_tag": large_account.RARE_TAG,
        "common_tag": large_account.COMMON_TAG,
    }
    for name, path in PAGES:
        yield name, path.format(**words)
    for search in SEARCHES:
        text = search.format(**words)
        yield f"`{text}`", f"/messages?{urllib.parse.urlencode({'search': text})}"


def _date(start: int, *, days: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime((start + days * large_account.DAY) / 1_000_000))


def _older(browser: Browser, path: str) -> str:
    """The address behind the link to the next page."""
    found = OLDER.search(browser.get(path).page)
    if found is None:
        raise RuntimeError(f"{path} has no link to its next page")
    return found[1].decode().replace("&amp;", "&")


def _figure(peer: str, name: str, path: str, *, browser: Browser, log: pathlib.Path, times: int) -> Figure:
    answers = [browser.get(path) for _ in range(1 + WARM_UP + times)]
    durations = _durations(log, [answer.request_id for answer in answers])
    warm = sorted(durations[1 + WARM_UP :])
    refused = next((answer.status for answer in answers if answer.status != http.HTTPStatus.OK), None)
    figure = Figure(
        peer=peer,
        page=name,
        first=durations[0],
        p50=statistics.median(warm),
        p95=warm[min(len(warm) - 1, round(len(warm) * 0.95))],
        slowest=warm[-1],
        kilobytes=len(answers[-1].page) / 1000,
        problem="" if refused is None else f"was answered with {refused}",
    )
    print(f"{peer}, {name}: p50 {figure.p50:.1f} ms, slowest {figure.slowest:.1f} ms {figure.problem}", flush=True)
    return figure


def _durations(log: pathlib.Path, request_ids: typing.Sequence[str]) -> list[float]:
    """What the service's log says of these requests; a line may come a moment after its answer."""
    wanted, found = set(request_ids), dict[str, float]()

    def read() -> bool:
        for line in log.read_text().splitlines():
            if line.startswith("{") and '"request"' in line and (reported := json.loads(line))["event"] == "request":
                found[reported["request_id"]] = reported["duration_ms"]
        return wanted <= found.keys()

    process.wait_until(read, what="the log lines of the requests", seconds=LOG_SECONDS)
    return [found[request_id] for request_id in request_ids]


def table(figures: typing.Sequence[Figure]) -> list[str]:
    """The figures as a Markdown table."""
    head = ("store", "page", "first ms", "p50 ms", "p95 ms", "slowest ms", "KB", f"under {GOAL_MILLISECONDS:.0f} ms")
    rows = [
        (
            one.peer,
            one.page,
            *(f"{value:,.1f}" for value in (one.first, one.p50, one.p95, one.slowest, one.kilobytes)),
            one.problem or ("yes" if one.is_quick else "NO"),
        )
        for one in figures
    ]
    return [f"| {' | '.join(cells)} |" for cells in (head, tuple("---" for _ in head), *rows)]


def verdicts(figures: typing.Sequence[Figure]) -> list[str]:
    """A sentence for each store."""
    sentences = []
    for peer in dict.fromkeys(one.peer for one in figures):
        of_peer = [one for one in figures if one.peer == peer]
        late = [one.page for one in of_peer if not one.is_quick]
        worst, first = max(of_peer, key=lambda one: one.slowest), max(of_peer, key=lambda one: one.first)
        outcome = f"NOT reached: {', '.join(late)}" if late else "reached"
        sentences.append(
            f"{peer}: the goal of {GOAL_MILLISECONDS:.0f} ms is {outcome}. The slowest answer was {worst.page} with "
            f"{worst.slowest:.0f} ms; the slowest of the first ones was {first.page} with {first.first:.0f} ms."
        )
    return sentences


def main() -> int:
    """Fill, measure, print, write; 0 when all is well, 1 when a page failed or was late, 2 when a gap is left."""
    options = _options()
    figures: list[Figure] = []
    with session.work_folder(options.folder) as folder, contextlib.ExitStack() as stack:
        facts = machine.facts() | {"file system": machine.file_system(folder)}
        gaps = session.in_memory(folder)
        wanted = any(peer.startswith("postgresql") for peer in options.peers)
        database = stack.enter_context(session.database(folder, facts, wanted=wanted))
        for peer in options.peers:
            figures += measure(peer, folder=folder / "service", database=database, options=options)
    remarks = [*verdicts(figures), *(f"INCOMPLETE: {gap}" for gap in gaps)]
    page = "\n".join(_page(options, figures, facts=facts, remarks=remarks))
    print(page)
    _write(options, figures, facts=facts, remarks=remarks, page=page)
    if not all(one.is_quick for one in figures):
        return 1
    return 2 if gaps else 0


def _page(
    options: argparse.Namespace, figures: list[Figure], *, facts: dict[str, str], remarks: list[str]
) -> typing.Iterator[str]:
    yield "# The dashboard with a million messages\n"
    yield (
        f"Milliseconds at the server, from the service's own log, of an account with {options.messages:,} messages of "
        f"{large_account.DAYS} days, of which {QUEUED:,} are queued; backlog: all of them are. One visitor over one "
        f"connection; {options.times} answers for each page after {WARM_UP} that warm up. First: the first answer to "
        "this question since the service started.\n"
    )
    yield from table(figures)
    yield ""
    yield from (f"- {remark}" for remark in remarks)
    yield "\n| fact | value |\n| --- | --- |"
    yield from (f"| {name} | {value} |" for name, value in facts.items())
    yield ""


def _write(
    options: argparse.Namespace, figures: list[Figure], *, facts: dict[str, str], remarks: list[str], page: str
) -> None:
    """A short run replaces the result of a whole one only when somebody says where to write."""
    is_full = all(getattr(options, name) == value for name, value in FULL.items())
    folder: pathlib.Path | None = options.results or (session.RESULTS if is_full else None)
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    reported = {"facts": facts, "remarks": remarks, "figures": [dataclasses.asdict(one) for one in figures]}
    (folder / "dashboard.md").write_text(page)
    (folder / "dashboard.json").write_text(json.dumps(reported, indent=2, ensure_ascii=False) + "\n")


def _options() -> argparse.Namespace:
    words = argparse.ArgumentParser(prog="python -m benchmarks.dashboard", description="Pages over a million messages.")
    words.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS), help="measure only these")
    words.add_argument("--messages", type=int, default=FULL["messages"], help="how many were sent (1000000)")
    words.add_argument("--times", type=int, default=FULL["times"], help="answers measured for each page (30)")
    words.add_argument("--folder", type=pathlib.Path, help="a folder on the disk to measure (the temporary one)")
    words.add_argument("--results", type=pathlib.Path, help="where dashboard.md and dashboard.json go")
    return words.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
