"""`make deb`: the Debian package of the checkout, into dist/. A release calls `build` with its own wheels.

The package has a whole environment in /usr/lib/postroad: the wheels of requirements/runtime.txt and extensions.txt,
checked by hash, and those of the service and its extensions. It uses the Python of the Debian release that it is built
on, so it is built once for each. release/debian has what else is in it; the units are those of deploy/. The same files,
version and time make the same bytes on one release of Debian.
"""

import gzip
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from email import utils
from pathlib import Path
from typing import Final

from release import distribution

LOCKS: Final = ("requirements/runtime.txt", "requirements/extensions.txt")
PYTHON: Final = f"python3.{sys.version_info.minor}"
HOME: Final = "usr/lib/postroad"
SITE: Final = f"{HOME}/lib/{PYTHON}/site-packages"
# Isolated: what a shell or a home says about Python changes nothing.
PROGRAM: Final = f"#!/{HOME}/bin/python3 -I\nimport sys\n\nfrom postroad import cli\n\nsys.exit(cli.main())\n"
# Where an operator installs extensions that are not of this package: pip install --target. Debian leaves it alone.
LOCAL: Final = "/usr/local/lib/postroad"
COMPLETIONS: Final = {
    "bash": "usr/share/bash-completion/completions/postroad",
    "fish": "usr/share/fish/vendor_completions.d/postroad.fish",
    "zsh": "usr/share/zsh/vendor-completions/_postroad",
}


def build(
    source: Path, wheels: Path, folder: Path, *, version: str, seconds: int, locks: Sequence[str] = LOCKS
) -> Path:
    """Build the package of the files in `source`, with the wheels in `wheels`, into `folder`."""
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary) / "root"
        site = root / SITE
        _install(source, wheels, root / HOME, version=version, locks=locks)
        _write(root / "usr/bin/postroad", link=f"../lib/{Path(HOME).name}/bin/postroad")
        # What `postroad deploy-files` writes, at a path without the version of Python.
        _write(root / "usr/share/postroad", link=f"../lib/{Path(SITE).relative_to('usr/lib')}/postroad/deploy")
        for unit in ("postroad.service", "postroad.socket"):
            _write(root / "usr/lib/systemd/system" / unit, (source / "deploy" / unit).read_text(encoding="utf-8"))
        for shell, name in COMPLETIONS.items():
            _write(root / name, _output(source, site, "postroad", "completion", shell))
        manual = _output(source, site, "release.manual_page", version, str(seconds))
        _write(root / "usr/share/man/man1/postroad.1.gz", manual)
        debian = source / "release" / "debian"
        _write(root / "usr/lib/sysusers.d/postroad.conf", (debian / "sysusers.conf").read_text(encoding="utf-8"))
        _write(root / "usr/share/lintian/overrides/postroad", (debian / "lintian").read_text(encoding="utf-8"))
        _write(root / "usr/share/doc/postroad/copyright", (debian / "copyright").read_text(encoding="utf-8"))
        fields = _fields(debian, root, version=version)
        _write(root / "usr/share/doc/postroad/changelog.gz", _changelog(fields, seconds))
        _write(root / "DEBIAN/control", "".join(f"{name}: {value}\n" for name, value in fields.items()))
        _write(root / "DEBIAN/md5sums", _sums(root))
        for script in ("postinst", "prerm", "postrm"):
            _write(root / "DEBIAN" / script, (debian / script).read_text(encoding="utf-8"), mode=0o755)
        return _packed(root, folder / f"postroad_{fields['Version']}_{fields['Architecture']}.deb", seconds)


def package_version(version: str) -> str:
    """The version in Debian's order, in which a development build is below its release too."""
    return version.replace(".dev", "~dev").replace("rc", "~rc")


def _install(source: Path, wheels: Path, home: Path, *, version: str, locks: Sequence[str]) -> None:
    """An environment of packages. Links and scripts of venv and pip name this machine; others start nothing."""
    venv.create(home)
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python3"), "--disable-pip-version-check"]
    install = [*pip, "-qq", "--no-input", "install", "--no-compile", "--no-warn-script-location"]
    if locks:
        locked = [word for lock in locks for word in ("--requirement", str(source / lock))]
        _run([*install, "--require-hashes", "--only-binary", ":all:", *locked])
    # By name: a package that is installed from a path records the path.
    names = [f"{_name(package)}=={version}" for package in distribution.packages(source)]
    _run([*install, "--no-deps", "--no-index", "-f", str(wheels), *names])
    for name in ("bin", "include", "lib64", "share"):
        path = home / name
        if path.is_symlink():
            path.unlink()
        else:
            shutil.rmtree(path, ignore_errors=True)
    for record in (home / "lib").rglob("*.dist-info/RECORD"):
        files = record.read_text(encoding="utf-8").splitlines(keepends=True)
        record.write_text("".join(file for file in files if not file.startswith("../")), encoding="utf-8")
    _write(home / "bin" / "postroad", PROGRAM, mode=0o755)
    # Absolute, so that an environment that is unpacked elsewhere can be tried before it is installed.
    _write(home / "bin" / "python3", link=f"/usr/bin/{PYTHON}")
    _write(home / "pyvenv.cfg", f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {PYTHON[6:]}\n")
    _write(home / "lib" / PYTHON / "site-packages" / "postroad-local.pth", f"{LOCAL}\n")


def _name(package: Path) -> str:
    return "postroad" if (package / "src" / "postroad").is_dir() else f"postroad-{package.name}"


def _fields(debian: Path, root: Path, *, version: str) -> dict[str, str]:
    """The control file: what does not depend on the build is in release/debian/control."""
    lines = (debian / "control").read_text(encoding="utf-8").rstrip("\n").replace("\n ", "\0 ").splitlines()
    constant = dict(line.replace("\0", "\n").split(": ", 1) for line in lines)
    minor = sys.version_info.minor
    needed = [
        # The wheels are those that this C library can load.
        f"libc6 (>= {platform.libc_ver()[1]})",
        f"python3 (>= 3.{minor})",
        f"python3 (<< 3.{minor + 1})",
        constant.pop("Depends"),
    ]
    files = [path for path in root.rglob("*") if not path.is_symlink()]
    kibibytes = sum(-(-path.stat().st_size // 1024) if path.is_file() else 1 for path in files)
    return {
        "Package": "postroad",
        "Version": package_version(version),
        "Architecture": _run(["dpkg", "--print-architecture"]).strip(),
        "Installed-Size": str(kibibytes),
        "Depends": ", ".join(needed),
        **constant,
    }


def _changelog(fields: dict[str, str], seconds: int) -> str:
    return (
        f"postroad ({fields['Version']}) stable; urgency=medium\n\n"
        f"  * See {fields['Homepage']}/blob/main/CHANGELOG.md\n\n"
        f" -- {fields['Maintainer']}  {utils.formatdate(seconds)}\n"
    )


def _sums(root: Path) -> str:
    files = sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    named = {path.relative_to(root): path for path in files if "DEBIAN" not in path.parts}
    # What dpkg --verify and debsums compare: damage, not attacks.
    return "".join(
        f"{hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()}  {name}\n" for name, path in named.items()
    )


def _output(source: Path, site: Path, module: str, *words: str) -> str:
    """What a module of the packaged service prints."""
    environment = {**os.environ, "PYTHONPATH": f"{site}:{source}", "PYTHONDONTWRITEBYTECODE": "1"}
    return _run([sys.executable, "-m", module, *words], environment=environment)


def _write(path: Path, text: str = "", *, link: str = "", mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if link:
        path.symlink_to(link)
        return
    # Without a time in it.
    path.write_bytes(gzip.compress(text.encode(), mtime=0) if path.suffix == ".gz" else text.encode())
    path.chmod(mode)


def _packed(root: Path, file: Path, seconds: int) -> Path:
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            is_program = path.is_dir() or path.suffix == ".sh" or path.stat().st_mode & 0o100
            path.chmod(0o755 if is_program else 0o644)
        os.utime(path, (seconds, seconds), follow_symlinks=False)
    # The bytes that xz makes with several threads depend on how many there are.
    command = ["dpkg-deb", "--root-owner-group", "-Zxz", "--threads-max=1", "--build", str(root), str(file)]
    _run(command, environment={**os.environ, "SOURCE_DATE_EPOCH": str(seconds)})
    return file


def _run(command: Sequence[str], *, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise distribution.BuildError(f"{command[0]} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    """Build the package of the checkout in the current folder."""
    from postroad import build_version  # noqa: PLC0415 - a release passes its version

    root = Path.cwd()
    version = build_version.to_build()
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH") or _run(["git", "log", "-1", "--format=%ct"]))
    folder = root / "dist"
    folder.mkdir(exist_ok=True)
    try:
        with tempfile.TemporaryDirectory() as wheels:
            for package in distribution.packages(root):
                distribution.build(package, "wheel", Path(wheels), version=version, seconds=seconds)
            made = build(root, Path(wheels), folder, version=version, seconds=seconds)
    except distribution.BuildError as problem:
        sys.exit(f"No package: {problem}")
    print(f"{made.relative_to(root)}  {made.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
