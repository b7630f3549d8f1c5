"""The newest Python that Postroad supports, from Debian's packages, for a machine that has an older one.

`python -m tests.newest_python 3.14 FOLDER` unpacks it there, and `make test-newest` uses it. It starts
through the dynamic loader of its own C library, so that the machine's does not matter: FOLDER/usr/bin/python3.14 is a
script that does so. Whatever starts `sys.executable` starts that script, or a link to it in an environment.
"""

import pathlib
import sys

from benchmarks import debian_packages

RELEASE = "forky"
# `$0` is the path that was called: Python finds its environment beside it.
START = """\
#!/bin/sh
exec '{loader}' --argv0 "$0" --library-path '{libraries}' '{program}' "$@"
"""
WHEELS = "/usr/share/python-wheels/"


def main() -> int:
    """Unpack it in place of what is there, or say why that cannot be."""
    version, root = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    try:
        with debian_packages.release(RELEASE, folder=root.parent) as release:
            # The last one is what compiled packages expect of a system.
            release.unpack(f"python{version}", f"python{version}-venv", "libstdc++6", root=root)
    except debian_packages.UnavailableError as error:
        sys.stderr.write(f"Python {version} is not unpacked: {error}\n")
        return 1
    make_startable(root, version=version)
    return 0


def make_startable(root: pathlib.Path, *, version: str) -> None:
    """Let it start, and make environments with pip, from where it is unpacked."""
    # Debian's ensurepip looks for pip in the system.
    for file in (root / "usr" / "lib" / f"python{version}").glob("_sysconfig*"):
        if file.is_file() and not file.is_symlink():
            file.write_text(file.read_text().replace(WHEELS, f"{root}{WHEELS}"))
    (library,) = (root / "usr" / "lib").glob("*-linux-gnu/libc.so.6")
    (loader,) = library.parent.glob("ld-linux*.so.*")
    script = root / "usr" / "bin" / f"python{version}"
    program = script.rename(script.with_suffix(f"{script.suffix}-program"))
    script.write_text(START.format(loader=loader, libraries=library.parent, program=program))
    script.chmod(0o755)


if __name__ == "__main__":
    sys.exit(main())
