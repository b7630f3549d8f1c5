"""Mail servers from Debian's packages, each in a root folder of its own, because Debian installs only one at a time.

`python -m benchmarks.peers.debian` unpacks each package with all that it needs below `benchmarks/mta`. A server starts
with that folder as its root, in a mount namespace of its own, where `etc` and `var` are folders of the round: its
configuration, and its queue on the disk that is measured. The system's own mail server, users and resolver are not
touched. Only root may do this.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import typing

from benchmarks import debian_packages
from benchmarks.peers import process

ROOTS = pathlib.Path(__file__).parents[1] / "mta"
RELEASE = "forky"
PACKAGES: typing.Mapping[str, str] = {"exim": "exim4-daemon-light", "opensmtpd": "opensmtpd", "chasquid": "chasquid"}
REMEDY = "python -m benchmarks.peers.debian"

# Words: the root folder, the round's folder, the program and its arguments. It becomes the program, so its id stays.
ENTER = """
set -e
root=$1 round=$2
shift 2
mount --bind "$round/etc" "$root/etc"
mount --bind "$round/var" "$root/var"
mount --rbind /dev "$root/dev"
mount --rbind /proc "$root/proc"
ulimit -n "$(ulimit -H -n)"
exec chroot "$root" "$@"
"""
PASSWD = "root:x:0:0::/:/bin/false\nnobody:x:65534:65534::/:/bin/false\n"
GROUP = "root:x:0:\nnogroup:x:65534:\n"
# The first user of a server; its group has the same number.
FIRST_USER = 64000


def missing(name: str) -> str | None:
    """Why this server cannot run here, with the remedy; None when it can."""
    if os.geteuid() != 0:
        return f"{PACKAGES[name]} starts only as root"
    if not (ROOTS / name).exists():
        return f"{PACKAGES[name]} is not unpacked: {REMEDY}"
    return None


def prepare(folder: pathlib.Path, *, users: typing.Sequence[str], name_server: str = "127.0.0.1") -> None:
    """The `etc` and `var` of a round, with the users that the server wants; the first one has FIRST_USER's number."""
    (folder / "etc").mkdir(parents=True)
    (folder / "var").mkdir()
    folder.chmod(0o755)
    numbers = {user: FIRST_USER + position for position, user in enumerate(users)}
    passwd = (f"{user}:x:{number}:{number}::/var/empty:/bin/false\n" for user, number in numbers.items())
    group = (f"{user}:x:{number}:\n" for user, number in numbers.items())
    files = {
        "passwd": PASSWD + "".join(passwd),
        "group": GROUP + "".join(group),
        "hosts": "127.0.0.1 localhost\n",
        "resolv.conf": f"nameserver {name_server}\n",
    }
    for name, text in files.items():
        (folder / "etc" / name).write_text(text)


def entering(name: str, folder: pathlib.Path, *words: str) -> list[str]:
    """The command that runs a program of a server's root, with the `etc` and `var` of a folder."""
    enter = ["unshare", "--mount", "--propagation", "private", "sh", "-c", ENTER, "sh"]
    return [*enter, str(ROOTS / name), str(folder), *words]


def start(name: str, folder: pathlib.Path, *words: str, port: int) -> subprocess.Popen[bytes]:
    """Start a server in its root and wait for its port; its output goes to `log` in the folder."""
    log = folder / "log"
    program = process.start(entering(name, folder, *words), log=log)
    try:
        process.wait_until(lambda: _listening(program, name=name, port=port, log=log), what=f"the start of {name}")
    except BaseException:
        process.stop(program)
        raise
    return program


def _listening(program: subprocess.Popen[bytes], *, name: str, port: int, log: pathlib.Path) -> bool:
    if program.poll() is not None:
        raise RuntimeError(f"{name} ended with {program.returncode}: {log.read_text()}")
    return process.listens(port)


def version(name: str) -> str:
    """The version of the package, and the release of Debian."""
    return f"{(ROOTS / name / 'version').read_text().strip()} (Debian {RELEASE})"


def main() -> int:
    """Unpack all of them, in place of what is there."""
    try:
        with debian_packages.release(RELEASE, folder=ROOTS) as release:
            for name, package in PACKAGES.items():
                print(f"Unpacking {package} of Debian {RELEASE}", flush=True)
                release.unpack(package, root=ROOTS / name)
                shutil.rmtree(ROOTS / name / "usr" / "share")  # manuals, which a search of the sources would find
    except debian_packages.UnavailableError as error:
        print(f"Not unpacked: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
