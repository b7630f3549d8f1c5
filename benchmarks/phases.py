"""Which phase of a message's life a stack belongs to.

From the innermost function outwards, the first one that the table knows decides. What is not in it, such as addresses,
JSON or a query, serves many phases and belongs to whoever called it. A longer path beats a shorter one, and a function
its file.
"""

import collections
import dataclasses
import typing

from benchmarks import stacks

EVENT_LOOP = "event loop"
COMMIT = "commit"
TRANSACTIONS = "transactions"
SIGNERS = "sign: workers"
OTHER = "other"
# The order of the table: as a message meets them.
PHASES = {
    EVENT_LOOP: "uvloop: polling, reading from sockets, timers",
    "HTTP": "requests and answers, routes",
    "SMTP": "the verbs of a session, and its replies",
    "authenticate": "who calls",
    "parse": "JSON, or a finished message, into values; its fingerprint",
    "validate": "the rules, the rate, the sender's domain",
    "compose": "ids and MIME",
    "store": "the accepting transaction's queries",
    "claim": "which recipients next; their leases and routes",
    "prepare": "content and envelope of what is claimed",
    "sign": "hashes of DKIM, and the way to the workers and back",
    SIGNERS: "RSA, in processes of their own",
    "send": "SMTP to the destination",
    "record": "what became of it: queries, and what leads to them",
    TRANSACTIONS: "group commit, BEGIN, the way to the commit's thread and back",
    COMMIT: "COMMIT in its thread: SQLite and the disk",
    "log": "log lines and metrics",
    OTHER: "what no phase claims",
}
# Paths within the package, a file or a folder; or a file and a function of it.
OF_FILE: typing.Mapping[str, str] = {
    "network/http/": "HTTP",
    "network/listener.py": "HTTP",
    "web/": "HTTP",
    "network/smtp/smtp_server.py": "SMTP",
    "protocol/smtp/server": "SMTP",
    "submission/": "SMTP",
    "api/authentication.py": "authenticate",
    "services/people/authentication.py": "authenticate",
    "services/people/access_cache.py": "authenticate",
    "services/people/last_used.py": "authenticate",
    "api/": "parse",
    "web/request_reader.py": "parse",
    "protocol/mime/message_parser.py": "parse",
    "mail/accept/submit.py": "validate",
    "mail/accept/validation.py": "validate",
    "mail/accept/mime_validation.py": "validate",
    "mail/accept/send_limits.py": "validate",
    "mail/accept/submit.py:_identity": "compose",
    "mail/accept/compose.py": "compose",
    "mail/accept/submit_mime.py": "compose",
    "mail/accept/rendering.py": "compose",
    "mail/accept/transaction.py": "store",
    "delivery/": "claim",
    "delivery/attempter.py:prepare": "prepare",
    "mail/signing/signer_pool.py": "sign",
    "delivery/provider_queue.py": "send",
    "delivery/permits.py": "send",
    "delivery/attempter.py": "send",
    "network/smtp/smtp_connection.py": "send",
    "protocol/smtp/client": "send",
    "delivery/recorder.py": "record",
    "mail/results/guard_counts.py": "record",
    "mail/results/outcomes.py": "record",
    "storage/engine/group_commit.py:_attempt": "record",
    "storage/engine/group_commit.py:_on_done": "record",
    "storage/engine/group_commit.py:_retry_later": "record",
    "telemetry/": "log",
}
_PACKAGE = "/postroad/"
# Under everything that runs on the event loop, and no phase of a message.
_START = ("cli/", "roles/service.py")


class Costliest(typing.NamedTuple):
    """A function with its microseconds a message."""

    function: str
    microseconds: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Functions:
    """The costliest functions of a phase: alone, with the C that they call; and with all that they call."""

    own: list[Costliest]
    inclusive: list[Costliest]


def of_stack(stack: stacks.Stack) -> str:
    """The phase."""
    return _found(stack)[0]


def functions(seen: collections.Counter[stacks.Stack], *, microseconds: float, most: int = 8) -> dict[str, Functions]:
    """The costliest functions of each phase, where a sample stands for so many microseconds a message."""
    own: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    inclusive: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for stack, times in seen.items():
        phase, depth = _found(stack)
        own[phase][_name(stack[0])] += times
        for name in {_name(function) for function in stack[: depth + 1]}:
            inclusive[phase][name] += times

    def costliest(counted: collections.Counter[str]) -> list[Costliest]:
        return [Costliest(name, times * microseconds) for name, times in counted.most_common(most)]

    return {phase: Functions(own=costliest(own[phase]), inclusive=costliest(inclusive[phase])) for phase in own}


def _found(stack: stacks.Stack) -> tuple[str, int]:
    """The phase, and how far out on the stack it reaches."""
    phases = [_of_function(function) for function in stack]
    phase = next((one for one in phases if one not in (None, TRANSACTIONS, OTHER)), None)
    phase = phase or (TRANSACTIONS if TRANSACTIONS in phases else OTHER if OTHER in phases else EVENT_LOOP)
    reach = max((depth for depth, one in enumerate(phases) if one == phase), default=0)
    return phase, reach


def _of_function(function: stacks.Function) -> str | None:
    """The phase of one function; None when it is not ours."""
    _, ours, path = function.file.rpartition(_PACKAGE)
    if not ours or path.startswith(_START):
        return None
    fits = [key for key in OF_FILE if f"{path}:{function.name}".startswith(key)]
    if fits:
        return OF_FILE[max(fits, key=len)]
    return TRANSACTIONS if path.startswith("storage/") else OTHER


def _name(function: stacks.Function) -> str:
    """A short name: the path within the package, or the end of it in a library."""
    _, ours, path = function.file.rpartition(_PACKAGE)
    return f"{path if ours else '/'.join(function.file.split('/')[-2:])}:{function.name}"
