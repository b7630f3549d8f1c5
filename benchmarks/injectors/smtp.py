"""Mail by SMTP with `smtp-source`, Postfix's own load generator.

It sends a number of messages, not for a time, so a short run finds the rate and the measured run gets the number that
fills its seconds. Sessions are kept (`-d`), or each message has its own; it does not pipeline. It stops at the first
reply that is not the expected one, which is an error here: no message of a run may be refused.
"""

import concurrent.futures
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import time
import typing

from benchmarks import message
from benchmarks.injectors import injection


def missing() -> str | None:
    """Why nothing can be sent from here, with the remedy; None when it can."""
    return None if shutil.which("smtp-source") else "smtp-source is not installed: apt-get install postfix"


def send(*, port: int, messages: int, sessions: int, mime: pathlib.Path, keep: bool = True) -> injection.Injection:
    """Send `messages` copies of the file `mime` over `sessions` connections and wait until all are accepted."""
    with sending(port=port, messages=messages, sessions=sessions, mime=mime, keep=keep) as under_way:
        pass
    return under_way.ended()


@contextlib.contextmanager
def sending(
    *, port: int, messages: int, sessions: int, mime: pathlib.Path, keep: bool = True
) -> typing.Iterator[injection.Sending]:
    """The same while the block runs; its end waits for the last accept."""
    command = [
        "smtp-source",
        "-4",
        "-s",
        str(sessions),
        "-m",
        str(messages),
        "-F",
        str(mime),
        *(["-d"] if keep else []),
    ]
    command += ["-M", "client.example.com", "-f", message.SENDER, "-t", f"customer@{message.RECIPIENT_DOMAIN}"]
    began = time.monotonic()
    process = subprocess.Popen([*command, f"127.0.0.1:{port}"])
    under_way = injection.Sending()
    with concurrent.futures.ThreadPoolExecutor(1) as beside:
        end = beside.submit(_end, process)  # beside us, so that the moment of the last accept is known
        try:
            yield under_way
        except BaseException:
            if not end.done():
                os.kill(process.pid, signal.SIGTERM)
            raise
    ended_at, cpu_seconds = end.result()
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    under_way.result = injection.Injection(
        sent=messages,
        failed=0,
        accepts_per_second=messages / (ended_at - began),
        seconds=ended_at - began,
        cpu_seconds=cpu_seconds,
        latency=None,
    )


def _end(process: subprocess.Popen[bytes]) -> tuple[float, float]:
    """Wait for the program; when it ended, and the CPU seconds that it took."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return time.monotonic(), usage.ru_utime + usage.ru_stime
