"""`make test-packages`: the Debian package on a fresh system, installed, upgraded, removed and purged.

    python -m tests.packages.debian_package [OLDER.deb NEWER.deb]

Without files, both are built from the checkout, the older one as 0.1.0.dev0. debootstrap makes the system, in .cache,
with the packages that Postroad needs in its cache of packages. Then systemd starts in it as process 1, in namespaces
of its own and with nothing but loopback, and nothing that happens changes the system in .cache. What a person types is
taken from docs/production.md, and printed with the seconds that it took.
"""
# ruff: noqa: T201 - the run prints what happens

import contextlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from postroad import build_version
from release import deb, distribution
from tests import dns_server
from tests.packages import outside_world

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs" / "production.md").read_text(encoding="utf-8")
UPGRADE_PAGE: Final = (ROOT / "docs" / "upgrade.md").read_text(encoding="utf-8")
OLDER_VERSION: Final = "0.1.0.dev0"
TOOLS: Final = {
    "debootstrap": "debootstrap",
    "systemd-nspawn": "systemd-container",
    "nsenter": "util-linux",
    "dpkg-deb": "dpkg",
}
BOOT_SECONDS: Final = 120
COMMAND_SECONDS: Final = 900
PORT_25_IS_BLOCKED: Final = f"""
[[upstreams]]
name = "relay"
host = "127.0.0.1"
port = {outside_world.RELAY_PORT}
tls = "off"
"""
# What a purge leaves: the packages themselves, logs, and what apt and systemd remember of them.
MAY_STAY: Final = ("/root/", "/var/log/", "/var/cache/apt/", "/var/lib/systemd/")
# Without a service manager on this machine.
NSPAWN: Final = ("systemd-nspawn", "-q", "--register=no", "--keep-unit")


def main(files: Sequence[str]) -> None:
    """Try a package, or say what is missing for it."""
    missing = {package for program, package in TOOLS.items() if shutil.which(program) is None}
    if os.geteuid() != 0 or missing:
        needed = " ".join(sorted(missing))
        print(f"NOT PROVEN: the Debian package. This needs root{needed and ', and: apt-get install ' + needed}")
        return
    with tempfile.TemporaryDirectory(prefix="postroad-packages-") as name:
        folder = Path(name)
        older, newer = map(Path, files) if files else _build(folder)
        root = _system(older)
        with _booted(root, (older, newer), folder) as host:
            _try(host, older.name, newer.name, folder)
    print("The package was installed, upgraded, removed and purged.")


def _build(folder: Path) -> tuple[Path, Path]:
    seconds = int(time.time())
    made = []
    for version in (OLDER_VERSION, build_version.to_build()):
        print(f"Building the package of {version}", flush=True)
        wheels = folder / version
        for package in distribution.packages(ROOT):
            distribution.build(package, "wheel", wheels, version=version, seconds=seconds)
        made.append(deb.build(ROOT, wheels, folder, version=version, seconds=seconds))
    return made[0], made[1]


def _system(package: Path) -> Path:
    """A system of the Debian release of this machine, for which the package is."""
    release = platform.freedesktop_os_release()["VERSION_CODENAME"]
    root = ROOT / ".cache" / f"debian-{release}"
    if not root.exists():
        print(f"Making a system of Debian {release}", flush=True)
        new = root.with_name(f"{root.name}.new")
        shutil.rmtree(new, ignore_errors=True)
        new.parent.mkdir(exist_ok=True)
        _run(["debootstrap", "--variant=minbase", "--include=dbus,systemd,systemd-sysv", release, str(new)])
        new.rename(root)  # last: a system that is there is whole
    # The only step with a network: the packages that are needed.
    bound = f"--bind-ro={package}:/root/{package.name}"
    fetch = f"apt-get -q update && apt-get -q install --yes --download-only /root/{package.name}"
    _run([*NSPAWN, "-D", str(root), "--resolv-conf=bind-host", bound, "sh", "-c", fetch])
    return root


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{command[0]} ended with {done.returncode}:\n{done.stdout}{done.stderr}")


class Host:
    """A running system. `pid` is its process 1, as this machine sees it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def types(self, command: str, *, code: int | None = 0) -> str:
        """What a command prints that a person types as root, with the seconds that it took."""
        started = time.monotonic()
        printed = self.run(command, code=code)
        print(f"# {command}   ({time.monotonic() - started:.1f} s)", flush=True)
        return printed

    def run(self, command: str, *, code: int | None = 0) -> str:
        """What a command prints; an unexpected exit code is a failure."""
        words = ["nsenter", "--target", str(self.pid), "--all", "sh", "-c", f"cd /root\n{command}"]
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}
        environment |= {"LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
        done = subprocess.run(
            words,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        if code is not None and done.returncode != code:
            log = "" if "journalctl" in command else self.run("journalctl --no-pager --unit postroad", code=None)
            sys.exit(f"# {command}\nended with {done.returncode}:\n{done.stdout}\n{log}")
        return done.stdout.strip()


@contextlib.contextmanager
def _booted(root: Path, packages: Sequence[Path], folder: Path) -> Iterator[Host]:
    """A system that runs; what it writes is forgotten with it."""
    bound = [f"--bind-ro={package}:/root/{package.name}" for package in packages]
    isolated = ["--private-network", "--volatile=overlay", "--resolv-conf=off"]
    with (
        (folder / "console").open("wb") as console,
        subprocess.Popen(
            [*NSPAWN, "-D", str(root), *isolated, *bound, "--boot"],
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
        ) as nspawn,
    ):
        try:
            yield _running_host(nspawn, folder / "console")
        finally:
            nspawn.terminate()  # it halts the system
            try:
                nspawn.wait(BOOT_SECONDS)
            except subprocess.TimeoutExpired:
                nspawn.kill()


def _running_host(nspawn: subprocess.Popen[bytes], console: Path) -> Host:
    """The system, once all of its services are started. The first child of nspawn is only the one that starts it."""
    give_up_at = time.monotonic() + BOOT_SECONDS
    while nspawn.poll() is None and time.monotonic() < give_up_at:
        for child in Path(f"/proc/{nspawn.pid}/task/{nspawn.pid}/children").read_text(encoding="ascii").split():
            host = Host(int(child))
            if host.run("systemctl is-system-running", code=None) == "running":
                return host
        time.sleep(0.5)
    sys.exit(f"The system does not start:\n{console.read_text()}")


def _try(host: Host, older: str, newer: str, folder: Path) -> None:
    started = time.monotonic()
    host.types(f"apt-get install --yes ./{older}")
    _check_waiting(host)
    printed = host.types(_typed(r"(runuser -u postroad -- postroad init .+?)```"))
    host.run(f"cat >> /etc/postroad/postroad.toml <<'END'{PORT_25_IS_BLOCKED}END")
    host.run("echo nameserver 127.0.0.1 > /etc/resolv.conf")
    with _outside_world(host, _zones(printed), folder) as world:
        assert world.stdin
        host.types("systemctl start postroad")
        host.types(send := _typed(r"(runuser -u postroad -- postroad send .+?)```"))
        print(f"The first mail was delivered {time.monotonic() - started:.0f} seconds after the first command.")
        _check_files(host)
        for line in _typed(r"do this once:\n\n```sh\n(.+?)```").splitlines():
            host.types(line)
        before = host.run("runuser -u postroad -- postroad --version")
        messages = host.run("runuser -u postroad -- postroad messages")
        host.run(f"dpkg-deb --extract {newer} /opt/postroad-next")
        check, check_config = _typed(r"## One host.+?cd /opt/\S+\n(.+?)   ```", page=UPGRADE_PAGE).splitlines()
        there = "cd /opt/postroad-next/usr/lib/postroad && "
        # The exit code says whether there is something to migrate.
        printed = host.types(there + check.strip(), code=None)
        assert "The schema is " in printed, printed
        host.types(there + check_config.strip())
        host.run("rm -r /opt/postroad-next")
        world.stdin.write("connect\n")
        world.stdin.flush()
        host.types(f"apt-get install --yes ./{newer}")
        world.stdin.write("rest\n")
        world.stdin.flush()
        after = host.run("runuser -u postroad -- postroad --version")
        print(f"{before} -> {after}")
        assert before != after
        status = host.types("systemctl status --no-pager postroad postroad.socket")
        assert status.count("Active: active (running)") == 2, status
        assert host.run("runuser -u postroad -- postroad messages") == messages
        host.types(send)
        host.types("runuser -u postroad -- postroad verify")
        _remove(host, newer, send)
    _purge(host)


def _typed(pattern: str, *, page: str = PAGE) -> str:
    """Commands of a page."""
    (command,) = re.findall(pattern, page, re.DOTALL)
    return re.sub(r" \\\n *", " ", command).strip()


def _check_waiting(host: Host) -> None:
    """The service is enabled, and waits for its settings; nobody else can enter its folders."""
    assert host.run("systemctl is-enabled postroad") == "enabled"
    assert "ConditionPathExists=/etc/postroad/postroad.toml was not met" in host.run(
        "systemctl status postroad", code=3
    )
    assert host.run("systemctl is-failed postroad", code=1) == "inactive"
    assert host.run("systemctl is-enabled postroad.socket", code=1) == "disabled"
    assert re.fullmatch(
        r"postroad:x:\d+:\d+:Postroad:/var/lib/postroad:/usr/sbin/nologin", host.run("getent passwd postroad")
    )
    modes = host.run("stat --format '%n %U:%G %a' /etc/postroad /var/lib/postroad")
    assert modes.splitlines() == ["/etc/postroad postroad:postroad 700", "/var/lib/postroad postroad:postroad 700"]


def _check_files(host: Host) -> None:
    """Nothing was changed since it was unpacked, and shells complete."""
    assert host.run("dpkg --verify postroad") == ""
    complete = ". /usr/share/bash-completion/completions/postroad; complete -p postroad"
    assert "_postroad_completion" in host.run(f"bash -c '{complete}'")
    assert host.run("find /usr/lib/postroad -name __pycache__ | head -1") != ""
    assert host.run("test -f /usr/share/postroad/alerts.yml && echo there") == "there"


def _remove(host: Host, package: str, send: str) -> None:
    """Settings and mail stay, and a package that is installed again goes on with them."""
    host.types("apt-get remove --yes postroad")
    assert host.run("systemctl is-active postroad postroad.socket", code=None) == "inactive\ninactive"
    assert host.run("ls -d /usr/lib/postroad /usr/bin/postroad 2>/dev/null", code=None) == ""
    assert host.run("ls /etc/postroad /var/lib/postroad").split() == [
        "/etc/postroad:",
        "postroad.toml",
        "secret.key",
        "/var/lib/postroad:",
        "postroad.db",
    ]
    host.types(f"apt-get install --yes ./{package}")
    assert host.run("systemctl is-active postroad") == "active"
    host.types(send)


def _purge(host: Host) -> None:
    """Nothing stays but the user, who may own backups."""
    host.types("apt-get purge --yes postroad")
    found = host.run("find / -xdev -name '*postroad*'").splitlines()
    assert [path for path in found if not path.startswith(MAY_STAY)] == []
    assert host.run("getent passwd postroad") != ""
    assert host.run("systemctl list-units --all --no-legend 'postroad*'") == ""
    assert "no packages found" in host.run("dpkg-query --show postroad", code=1)


def _zones(printed: str) -> dns_server.Zones:
    """The records that `postroad init` printed, published."""
    zones: dict[str, dict[str, list[str]]] = {}
    for name, kind, value in re.findall(r"(?m)^    (\S+)\. IN (\S+) (.+)$", printed):
        if "ADDRESS" not in name + value:
            zones.setdefault(name, {}).setdefault(kind, []).append(value.strip("() "))
    zones.setdefault("mail.example.com", {})["A"] = [dns_server.LOOPBACK]
    return {**zones}


@contextlib.contextmanager
def _outside_world(host: Host, zones: dns_server.Zones, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Servers and a client in the network of the host. What they saw is checked at the end."""
    file = folder / "zones.json"
    file.write_text(json.dumps(zones))
    words = ["nsenter", "--target", str(host.pid), "--net", sys.executable, "-m", outside_world.__name__, str(file)]
    with subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as world:
        assert world.stdin
        assert world.stdout
        assert world.stdout.readline() == "ready\n"
        yield world
        world.stdin.close()
        seen = json.loads(world.stdout.read())
    refused = [banner for banner in seen["banners"] if not banner.startswith("220 ")]
    print(f"{seen['delivered']} messages arrived; {len(seen['banners'])} connections were made during the upgrade")
    assert (seen["delivered"], seen["signed"]) == (3, 3)
    assert seen["banners"]
    assert refused == []


if __name__ == "__main__":
    main(sys.argv[1:])
