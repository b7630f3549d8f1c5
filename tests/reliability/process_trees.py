"""Processes and those that they have forked, as the system knows them: a writer and its frontends."""

import resource
from pathlib import Path


def children(process_id: int) -> list[int]:
    """The ids of the processes that a process has forked; none where the system does not report them."""
    file = Path(f"/proc/{process_id}/task/{process_id}/children")
    try:
        return [int(word) for word in file.read_text().split()]
    except OSError:
        return []


def is_alive(process_id: int) -> bool:
    """Whether a process runs; one that nobody has buried yet does not."""
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def resident_bytes(process_id: int) -> int:
    """How much memory a process and those that it has forked have; what they share counts for each."""
    pages = [int(Path(f"/proc/{one}/statm").read_text().split()[1]) for one in (process_id, *children(process_id))]
    return sum(pages) * resource.getpagesize()
