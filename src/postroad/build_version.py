"""Which build this is: `0.1.0` for a release, `0.1.0.dev903+g6f63a0bd` for any other commit of it.

Before a release, the number of commits makes a later build a higher version for pip, and the hash names the commit
(PEP 440). `.dirty` follows where files differ from it. hatchling asks once, when it builds a package (pyproject.toml),
and an installed package has the answer in its metadata. In a checkout, which changes with every commit, git is asked.
"""

import functools
import os
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Final

import postroad

# The version of what is built without git: a release, and the image, whose build context has no history.
VARIABLE: Final = "POSTROAD_BUILD_VERSION"
# Of a source archive without history: nobody knows which commit.
UNKNOWN: Final = f"{postroad.__version__}.dev0"
ROOT: Final = Path(__file__).parents[2]
GIT_SECONDS: Final = 10


@functools.cache
def current() -> str:
    """The version of the running code, as it was when this was first asked."""
    if not (ROOT / "pyproject.toml").exists():
        return metadata.version("postroad")
    try:
        return of_commit(ROOT)
    except (OSError, subprocess.TimeoutExpired):
        return UNKNOWN


def to_build() -> str:
    """The version of the package that is built from this checkout. A commit without an answer is an error."""
    return os.environ.get(VARIABLE) or of_commit(ROOT)


def of_commit(root: Path) -> str:
    """The version of a checkout. Another repository around a source archive says nothing about it."""
    if not (root / ".git").exists():
        return UNKNOWN
    tag = f"v{postroad.__version__}"
    described = _git(root, "describe", "--tags", "--match", tag, "--always", "--long", "--dirty", "--abbrev=8")
    if described.startswith(f"{tag}-0-g") and not described.endswith("-dirty"):
        return postroad.__version__
    commit = described.removesuffix("-dirty").rpartition("-g")[2]
    local = f"g{commit}.dirty" if described.endswith("-dirty") else f"g{commit}"
    return f"{postroad.__version__}.dev{_git(root, 'rev-list', '--count', 'HEAD')}+{local}"


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(  # noqa: S603 - no word comes from outside
        ["git", *words],  # noqa: S607 - wherever it is installed
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
        timeout=GIT_SECONDS,
    )
    if done.returncode:
        raise ChildProcessError(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout.strip()
