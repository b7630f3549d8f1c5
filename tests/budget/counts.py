"""Counts of what the interpreter and the database do for a message, on all threads of the service.

- `calls`: calls of Python functions, those of libraries too. Comprehensions are none: since Python 3.12 they have no
  frame. What the event loop does to find out what is ready is none either: how often it looks depends on the machine.
- `awaits`: starts and resumptions of coroutines, which are calls as well.
- `statements`: statements of SQL, one for each row of those that are run for many rows.
- `commits`: transactions, those of leases too.
"""

import inspect
import sys
import threading
import types
from collections import Counter
from typing import Any, Final

import apsw
import msgspec

# Where the event loop looks for what is ready, and other threads wake it.
_LOOP_FILES: Final = ("selectors.py", "threading.py", "concurrent/futures/thread.py", "concurrent/futures/_base.py")
_LOOP_FUNCTIONS: Final = frozenset(
    {
        *(
            "_run_once",
            "_process_events",
            "_read_from_self",
            "_process_self_data",
            "_write_to_self",
            "time",
            "get_debug",
            "__lt__",
        ),
        *("call_soon_threadsafe", "_call_set_state", "_set_state", "_copy_future_state", "_call_check_cancel"),
    }
)
COMMIT: Final = "COMMIT"
# Of network/listener.py.
SWEEP: Final = "_tick"
_COMPREHENSIONS: Final = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>"})
_HARNESS: Final = "tests/budget/"


class Counts(msgspec.Struct, frozen=True):
    """What was counted, of one message or of several."""

    calls: float
    awaits: float
    statements: float
    commits: float


class Recording:
    """What happened since the recording began."""

    def __init__(self, functions: Counter[types.CodeType], statements: Counter[str]) -> None:
        self.functions = Counter({code: count for code, count in functions.items() if _is_counted(code)})
        self.statements = statements

    @property
    def has_sweep(self) -> bool:
        """Whether a listener has looked after its connections meanwhile, as it does once a second."""
        return any(code.co_name == SWEEP for code in self.functions)

    def counts(self, messages: int = 1) -> Counts:
        """The sums, per message."""
        awaits = sum(count for code, count in self.functions.items() if code.co_flags & inspect.CO_COROUTINE)
        commits = sum(count for sql, count in self.statements.items() if sql == COMMIT)
        # BEGIN and COMMIT are counted as the commit.
        statements = self.statements.total() - 2 * commits
        return Counts(*(round(count / messages, 1) for count in (self.functions.total(), awaits, statements, commits)))

    def table(self, messages: int) -> str:
        """The functions and statements per message, the most frequent first."""
        lines = [str(self.counts(messages))]
        for code, count in self.functions.most_common():
            file = code.co_filename.rpartition("src/")[2]
            lines.append(f"{count / messages:8.2f}  {file}:{code.co_firstlineno} {code.co_qualname}")
        lines += [
            f"{count / messages:8.2f}  {' '.join(sql.split())[:150]}" for sql, count in self.statements.most_common()
        ]
        return "\n".join(line for line in lines if not line.startswith("    0.00")) + "\n"

    def minus(self, other: "Recording") -> "Recording":
        """What is here and not there."""
        difference = Recording(Counter(self.functions), Counter(self.statements))
        difference.functions.subtract(other.functions)
        difference.statements.subtract(other.statements)
        return difference


class Counting:
    """Counts on the threads that are started, and the connections that are opened, after it."""

    def __init__(self) -> None:
        self._local = threading.local()
        self._of_threads: list[Counter[types.CodeType]] = []
        # Filled by SQLite, which calls no Python function for that: what began, and what ended.
        self._begun: list[dict[str, Any]] = []
        self._ended: list[dict[str, Any]] = []
        sys.setprofile(self._note)
        threading.setprofile(self._note)
        apsw.connection_hooks.append(self._trace)

    @property
    def progress(self) -> int | None:
        """A number that stands still when the service does; None during a commit, which waits for the disk."""
        begun, ended = (sum(event["sql"] == COMMIT for event in events) for events in (self._begun, self._ended))
        return sum(functions.total() for functions in self._of_threads) if begun == ended else None

    def restart(self) -> None:
        """Forget what was counted."""
        for functions in self._of_threads:
            functions.clear()
        self._begun.clear()
        self._ended.clear()

    def recording(self) -> Recording:
        """What was counted since then."""
        functions: Counter[types.CodeType] = Counter()
        for of_thread in self._of_threads:
            functions.update(of_thread)
        return Recording(functions, Counter(event["sql"] for event in self._begun))

    def _note(self, frame: types.FrameType, event: str, _argument: object) -> None:
        if event == "call":
            try:
                functions = self._local.functions
            except AttributeError:
                # Each thread has its own, so that no count is lost between two threads.
                functions = self._local.functions = Counter()
                self._of_threads.append(functions)
            functions[frame.f_code] += 1

    def _trace(self, connection: apsw.Connection) -> None:
        connection.trace_v2(apsw.SQLITE_TRACE_STMT, self._begun.append, id="begun")
        connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, self._ended.append, id="ended")


def _is_counted(code: types.CodeType) -> bool:
    if code.co_name in _COMPREHENSIONS or _HARNESS in code.co_filename:
        return False
    return not (
        code.co_filename.endswith(_LOOP_FILES) or ("asyncio/" in code.co_filename and code.co_name in _LOOP_FUNCTIONS)
    )
