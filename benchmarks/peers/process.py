"""Start a program, wait until it answers on its port, and end it: by its own process, never by a name."""

import contextlib
import pathlib
import random
import signal
import socket
import subprocess
import time
import typing

# A busy machine starts a service of several processes slowly.
READY_SECONDS = 120.0
STOP_SECONDS = 20.0
POLL_SECONDS = 0.05


# Below those that Linux gives to whoever asks for any port, so that no other test gets it before the program listens.
PORTS = range(10_000, 32_768)


def free_port() -> int:
    """A port of loopback that nobody listens on now."""
    (port,) = free_ports(1)
    return port


def free_ports(count: int) -> list[int]:
    """So many of them."""
    with contextlib.ExitStack() as stack:
        found: list[int] = []
        for port in random.SystemRandom().sample(PORTS, 1_000):
            probe = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                found.append(port)
            if len(found) == count:
                break
        return found


def start(command: typing.Sequence[str], *, log: pathlib.Path) -> subprocess.Popen[bytes]:
    """Start a program whose output goes to a file, as a service's log does."""
    with log.open("ab") as output:
        return subprocess.Popen(list(command), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)


def wait_until(ready: typing.Callable[[], bool], *, what: str, seconds: float = READY_SECONDS) -> None:
    """Ask again and again until `ready` says yes; a program that never gets there is an error."""
    give_up_at = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > give_up_at:
            raise TimeoutError(f"{what} did not happen within {seconds:.0f} s")
        time.sleep(POLL_SECONDS)


def listens(port: int, *, address: str = "127.0.0.1") -> bool:
    """Whether somebody accepts connections on this port of an address."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((address, port)) == 0


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ask with SIGTERM; after the grace period send SIGKILL."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
