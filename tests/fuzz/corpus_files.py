"""What the fuzzer keeps on disk: a file for each target, a line for each input.

A line is a JSON string whose characters stand for octets, so that a change can be read in a diff. The corpus belongs to
the repository; so do the words of each language, which are written by hand. What is in `crashes/` is for whoever mends
it, and is replayed with the rest until it is gone.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
CORPUS: Final = HERE / "corpus"
WORDS: Final = HERE / "words"
CRASHES: Final = HERE / "crashes"


def kept(target: str) -> list[bytes]:
    """The inputs of a target, in their order."""
    return _read(_file(target))


def words(target: str) -> list[bytes]:
    """The words of a target's language."""
    return _read(WORDS / f"{target}.txt")


def keep(target: str, inputs: Iterable[bytes]) -> None:
    """Replace the inputs of a target."""
    CORPUS.mkdir(exist_ok=True)
    _file(target).write_text("".join(json.dumps(data.decode("latin-1")) + "\n" for data in inputs))


def crashes(target: str) -> list[bytes]:
    """The inputs that broke a target and were not taken away since."""
    return [file.read_bytes() for file in sorted(CRASHES.glob(f"{target}-*"))]


def keep_crash(target: str, data: bytes) -> Path:
    """Write down what broke a target."""
    CRASHES.mkdir(exist_ok=True)
    file = CRASHES / f"{target}-{hashlib.sha256(data).hexdigest()[:12]}"
    file.write_bytes(data)
    return file


def _file(target: str) -> Path:
    return CORPUS / f"{target}.txt"


def _read(file: Path) -> list[bytes]:
    lines = file.read_text().splitlines() if file.exists() else []
    return [str(json.loads(line)).encode("latin-1") for line in lines]
