"""Mail by SMTP from clients that log in: what `smtp-source` does, and AUTH, which it cannot.

A process of its own with many sessions and one loop, as light as Python can be: a command is sent when the reply to the
one before is there, nothing is pipelined. A session is kept for all its messages, or makes a new connection for each.
The first reply that is not the expected one ends the run, as with `smtp-source`: no message may be refused.
"""

import argparse
import base64
import collections
import json
import pathlib
import resource
import select
import socket
import statistics
import subprocess
import sys
import time
import typing

from benchmarks import message
from benchmarks.injectors import injection

WAIT_SECONDS = 30
READ_BYTES = 65_536
FINAL_LINE = 3  # where a blank stands in the last line of a reply, and a hyphen in those before


class Login(typing.NamedTuple):
    """A username and its password."""

    username: str
    password: str


def send(
    *, port: int, messages: int, sessions: int, mime: pathlib.Path, login: Login | None, keep: bool
) -> injection.Injection:
    """Send copies of the file `mime` in a process of its own, and wait until all are accepted."""
    command = [sys.executable, "-m", __name__, "--port", str(port), "--messages", str(messages)]
    command += ["--sessions", str(sessions), "--mime", str(mime)]
    command += ["--keep"] if keep else []
    command += ["--username", login.username] if login else []
    # The password by the standard input: a command line can be read by everybody.
    done = subprocess.run(
        command, input=login.password if login else "", capture_output=True, text=True, check=False, timeout=3600
    )
    if done.returncode != 0:
        raise RuntimeError(f"the sessions ended with {done.returncode}: {done.stderr[-2000:]}")
    reported = json.loads(done.stdout)
    return injection.Injection(
        sent=messages,
        failed=0,
        accepts_per_second=messages / reported["seconds"],
        seconds=reported["seconds"],
        cpu_seconds=reported["cpu_seconds"],
        latency=injection.Latency(p50=reported["p50"], p99=reported["p99"], worst=reported["worst"]),
    )


class Script:
    """What every session says: before the first message, for each message, and at the end."""

    def __init__(self, content: bytes, login: Login | None) -> None:
        self.opening: list[tuple[bytes, bytes]] = [(b"", b"220"), (b"EHLO client.example.com\r\n", b"250")]
        if login is not None:
            plain = base64.b64encode(f"\0{login.username}\0{login.password}".encode())
            self.opening.append((b"AUTH PLAIN " + plain + b"\r\n", b"235"))
        recipient = f"customer@{message.RECIPIENT_DOMAIN}"
        self.message: list[tuple[bytes, bytes]] = [
            (f"MAIL FROM:<{message.SENDER}>\r\n".encode(), b"250"),
            (f"RCPT TO:<{recipient}>\r\n".encode(), b"250"),
            (b"DATA\r\n", b"354"),
            (content, b"250"),
        ]
        self.closing: list[tuple[bytes, bytes]] = [(b"QUIT\r\n", b"221")]


class Session:
    """One client; `steps` is what it has yet to say, and `expected` the code of the reply that it waits for."""

    def __init__(self, run: "Run") -> None:
        self._run = run
        self._received = b""
        self._began = 0.0
        self.socket = self._connect()

    def _connect(self) -> socket.socket:
        run = self._run
        self.socket = socket.create_connection(("127.0.0.1", run.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        run.watch(self)
        self._steps = collections.deque(run.script.opening)
        self._expected = self._steps.popleft()[1]
        self._in_message = False
        return self.socket

    def read(self) -> None:
        """The next reply, or a part of one."""
        self._received += self.socket.recv(READ_BYTES)
        end = self._received.rfind(b"\n", 0, -1) + 1
        last = self._received[end:]
        if not last.endswith(b"\n") or last[FINAL_LINE : FINAL_LINE + 1] != b" ":
            if not self._received:
                raise RuntimeError("the server hung up")
            return
        if not last.startswith(self._expected):
            raise RuntimeError(f"expected {self._expected.decode()}, got {last.decode(errors='replace')}")
        self._received = b""
        if self._steps:
            self._say()
        else:
            self._next_message()

    def _say(self) -> None:
        words, self._expected = self._steps.popleft()
        self.socket.sendall(words)

    def _next_message(self) -> None:
        run = self._run
        if self._in_message:
            run.latencies.append(time.perf_counter() - self._began)
            if not run.keep:
                self._in_message = False
                self._steps.extend(run.script.closing)
                self._say()
                return
        elif self._expected == b"221":
            self.end()
            if run.left:
                self._connect()
            return
        if not run.left:
            self.end()
            return
        run.left -= 1
        self._in_message = True
        self._began = time.perf_counter()
        self._steps.extend(run.script.message)
        self._say()

    def end(self) -> None:
        """Hang up."""
        self._run.forget(self)
        self.socket.close()


class Run:
    """All sessions and what they have yet to do."""

    def __init__(self, *, port: int, messages: int, script: Script, keep: bool) -> None:
        self.port = port
        self.left = messages
        self.script = script
        self.keep = keep
        self.latencies: list[float] = []
        self._poll = select.epoll()
        self._sessions: dict[int, Session] = {}

    def watch(self, session: Session) -> None:
        """Wake this session when a reply comes."""
        self._sessions[session.socket.fileno()] = session
        self._poll.register(session.socket.fileno(), select.EPOLLIN)

    def forget(self, session: Session) -> None:
        """It has ended."""
        self._poll.unregister(session.socket.fileno())
        del self._sessions[session.socket.fileno()]

    def work(self, sessions: int) -> None:
        """Until every message is accepted."""
        for _ in range(sessions):
            Session(self)
        while self._sessions:
            ready = self._poll.poll(WAIT_SECONDS)
            if not ready:
                raise TimeoutError(f"no reply for {WAIT_SECONDS} seconds")
            for descriptor, _ in ready:
                self._sessions[descriptor].read()


def main() -> int:
    """One run; prints what it saw as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--messages", type=int, required=True)
    parser.add_argument("--sessions", type=int, required=True)
    parser.add_argument("--mime", type=pathlib.Path, required=True)
    parser.add_argument("--username")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    login = Login(options.username, sys.stdin.read()) if options.username else None
    content = options.mime.read_bytes().replace(b"\n", b"\r\n").replace(b"\r\n.", b"\r\n..") + b".\r\n"
    run = Run(port=options.port, messages=options.messages, script=Script(content, login), keep=options.keep)
    began = time.monotonic()
    run.work(options.sessions)
    seconds = time.monotonic() - began
    used = resource.getrusage(resource.RUSAGE_SELF)
    sorted_milliseconds = sorted(1000 * each for each in run.latencies)
    reported = {
        "seconds": seconds,
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "p50": statistics.median(sorted_milliseconds),
        "p99": sorted_milliseconds[int(len(sorted_milliseconds) * 0.99)],
        "worst": sorted_milliseconds[-1],
    }
    print(json.dumps(reported))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
