"""A result says how it was made, without the paths of the machine that made it."""

from benchmarks import machine


def test_a_command_is_shown_without_paths() -> None:
    words = ["/opt/bin/python3", "-m", "benchmarks.accept", "--folder", "/mnt/x", "--rounds", "1", "--results=/mnt/y"]
    assert machine.command(words) == "python -m benchmarks.accept --rounds 1"
