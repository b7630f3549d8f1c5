"""Which build this is: `0.1.0` for a release, `0.1.0.dev903+g6f63a0bd` for any other commit of it.

Before a release, the number of commits makes a later build a higher version for pip, and the hash names the commit
(PEP 440). `.dirty` follows where files differ from it. hatchling asks once, when it builds a package (pyproject.toml),
and an installed package has the answer in its metadata. In a checkout, which changes with every commit, git is asked.
"""

import functools
import os
import subprocess
from pathlib import Path
from typing import Final

import postroad

# The version of what is built without git: a release, and the image, whose build context has no history.
VARIABLE: Final = "POSTROAD_BUILD_VERSION"
# Of a source archive, or where git is missing: nobody knows which commit. `make run` must work there too.
UNKNOWN: Final = f"{postroad.__version__}.dev0"
ROOT: Final = Path(__file__).parents[2]
GIT_SECONDS: Final = 10


@functools.cache
def current() -> str:
    """The version of the running code, as it was when this was first asked."""
    if (ROOT / "pyproject.toml").exists():
        return of_commit(ROOT)
    from importlib import metadata  # noqa: PLC0415 - `postroad --version` in a checkout need not wait for it

    return metadata.version("postroad")


def to_build() -> str:
    """The version of the package that is built from this checkout."""
    return os.environ.get(VARIABLE) or of_commit(ROOT)


def of_commit(root: Path) -> str:
    """The version of a checkout. Another repository around a source archive says nothing about it."""
    if not (root / ".git").exists():
        return UNKNOWN
    tag = f"v{postroad.__version__}"
    try:
        described = _git(root, "describe", "--tags", "--match", tag, "--always", "--long", "--dirty", "--abbrev=8")
        count = _git(root, "rev-list", "--count", "HEAD")
    except (OSError, subprocess.SubprocessError):
        return UNKNOWN
    if described.startswith(f"{tag}-0-g") and not described.endswith("-dirty"):
        return postroad.__version__
    commit = described.removesuffix("-dirty").rpartition("-g")[2]
    local = f"g{commit}.dirty" if described.endswith("-dirty") else f"g{commit}"
    return f"{postroad.__version__}.dev{count}+{local}"


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(  # noqa: S603 - no word comes from outside
        ["git", *words],  # noqa: S607 - wherever it is installed
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
        timeout=GIT_SECONDS,
    )
    return done.stdout.strip()
