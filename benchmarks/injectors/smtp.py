"""Mail by SMTP with `smtp-source`, Postfix's own load generator.

It sends a number of messages, not for a time, so a short run finds the rate and the measured run gets the number that
fills its seconds. Sessions are kept (`-d`), as HTTP connections are kept; it does not pipeline. It stops at the first
reply that is not the expected one, which is an error here: no message of a run may be refused.
"""

import os
import pathlib
import subprocess
import time

from benchmarks import message
from benchmarks.injectors import injection


def send(*, port: int, messages: int, sessions: int, mime: pathlib.Path) -> injection.Injection:
    """Send `messages` copies of the file `mime` over `sessions` kept connections and wait until all are accepted."""
    command = ["smtp-source", "-4", "-d", "-s", str(sessions), "-m", str(messages), "-F", str(mime)]
    command += ["-M", "client.example.com", "-f", message.SENDER, "-t", f"customer@{message.RECIPIENT_DOMAIN}"]
    began = time.monotonic()
    process = subprocess.Popen([*command, f"127.0.0.1:{port}"])
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    return injection.Injection(
        sent=messages,
        failed=0,
        accepts_per_second=messages / seconds,
        seconds=seconds,
        cpu_seconds=usage.ru_utime + usage.ru_stime,
        latency=None,
    )
