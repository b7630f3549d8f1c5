"""Requests over persistent HTTP connections with wrk, one thread, each request with a serial of its own.

wrk is driven by `http.lua`, which stops sending after the given time, or after the given number of requests, and lets
every answer come in: so the number sent is exact and can be compared with what was stored. At the end of the sending
time each connection has one request on its way; these are answered afterwards and do not count into the rate. The
percentiles are wrk's.
"""

import contextlib
import dataclasses
import json
import math
import os
import pathlib
import signal
import subprocess
import typing

from benchmarks.injectors import injection

SCRIPT = pathlib.Path(__file__).with_name("http.lua")
# After the sending time: long enough for the answers on their way, and for wrk's own slow start.
DRAIN_SECONDS = 2
ANSWER_SECONDS = 10
# wrk begins a little after its start, and its last answers come a little after the sending time.
EDGE_SECONDS = 0.2
# wrk must be told when to end; one that sends a number is ended by us, long before.
FOREVER_SECONDS = 86_400


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where to send, and the file with the whole HTTP request (see `write_request`).

    With `values`, a file of lines of one word or two, these stand where `message.VALUES` do, one line after the other.
    """

    port: int
    request: pathlib.Path
    connections: int
    values: pathlib.Path | None = None


def write_request(
    path: pathlib.Path, *, target: str, headers: typing.Mapping[str, str], body: bytes | None = None
) -> None:
    """Write the template of a POST, or without a body of a GET; the serial may stand anywhere in it."""
    lines = [f"{'GET' if body is None else 'POST'} {target} HTTP/1.1", "Host: 127.0.0.1"]
    lines += [] if body is None else [f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    path.write_bytes("\r\n".join([*lines, "", ""]).encode() + (body or b""))


def send(
    target: Target, *, seconds: float, expect: int | None = None, rate: float | None = None
) -> injection.Injection:
    """Send for `seconds`; with `expect`, count every answer of another status as failed, else those over 399.

    With a `rate`, no more than so many a second.
    """
    script = {"BENCH_SECONDS": str(seconds)}
    if expect is not None:
        script["BENCH_EXPECT"] = str(expect)
    if rate is not None:
        script["BENCH_RATE"] = str(rate)
    process = _start(target, seconds=math.ceil(seconds) + DRAIN_SECONDS, script=script)
    figures, cpu_seconds = _end(process)
    unanswered = figures["sent"] - figures["answered"]
    return injection.Injection(
        sent=figures["sent"],
        failed=max(figures["unexpected"], figures["refused"]) + figures["broken"] + abs(unanswered),
        accepts_per_second=max(figures["sent"] - target.connections, 0) / seconds,
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        latency=_latency(figures),
    )


@contextlib.contextmanager
def sending(target: Target, *, messages: int) -> typing.Iterator[injection.Sending]:
    """Send `messages` while the block runs; its end is the end of wrk too, which a missing answer shows as failed."""
    script = {"BENCH_SECONDS": str(FOREVER_SECONDS), "BENCH_MESSAGES": str(messages)}
    process = _start(target, seconds=FOREVER_SECONDS, script=script)
    under_way = injection.Sending()
    try:
        yield under_way
    finally:
        process.send_signal(signal.SIGINT)  # wrk ends in order, with its figures
        figures, cpu_seconds = _end(process)
        seconds = max(figures["milliseconds"], 1) / 1000
        under_way.result = injection.Injection(
            sent=figures["sent"],
            # Not those that broke: a silent connection may, and an answer that got lost is missing.
            failed=figures["refused"] + abs(messages - figures["answered"]),
            accepts_per_second=figures["sent"] / seconds,
            seconds=seconds,
            cpu_seconds=cpu_seconds,
            latency=_latency(figures),
        )


def _start(target: Target, *, seconds: int, script: typing.Mapping[str, str]) -> subprocess.Popen[str]:
    environment = {**os.environ, "BENCH_TEMPLATE": str(target.request), **script}
    if target.values is not None:
        environment["BENCH_VALUES"] = str(target.values)
    command = ["wrk", "--threads", "1", "--connections", str(target.connections), "--timeout", f"{ANSWER_SECONDS}s"]
    command += ["--duration", f"{seconds}s", "--script", str(SCRIPT), f"http://127.0.0.1:{target.port}/"]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def _end(process: subprocess.Popen[str]) -> tuple[dict[str, int], float]:
    """Wait for wrk; its figures, and the CPU seconds that it took."""
    assert process.stdout is not None
    with process.stdout as stream:
        output = stream.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return _figures(output), usage.ru_utime + usage.ru_stime


def _latency(figures: typing.Mapping[str, int]) -> injection.Latency:
    return injection.Latency(p50=figures["p50"] / 1000, p99=figures["p99"] / 1000, worst=figures["worst"] / 1000)


def _figures(output: str) -> dict[str, int]:
    for line in output.splitlines():
        if line.startswith("BENCH "):
            figures: dict[str, int] = json.loads(line.removeprefix("BENCH "))
            return figures
    raise RuntimeError(f"wrk did not finish:\n{output}")
