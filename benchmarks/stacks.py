"""What `sampled.py` wrote, read: a line for each sample, its functions with a tab between them, innermost first."""

import collections
import pathlib
import typing


class Function(typing.NamedTuple):
    """The file that holds a function, and its name."""

    file: str
    name: str


Stack = tuple[Function, ...]


def read(path: pathlib.Path, *, begin: int, end: int) -> collections.Counter[Stack]:
    """How often each stack was seen while the file grew from one size to another."""
    with path.open("rb") as file:
        file.seek(begin)
        lines = file.read(end - begin).decode().splitlines()
    return collections.Counter(map(parse, lines))


def parse(line: str) -> Stack:
    """One sample."""
    return tuple(Function(*function.rsplit(":", 1)) for function in line.split("\t"))
