"""Samples of a stack: C belongs to its caller, and waiting and other threads belong to nobody."""

import subprocess
import sys
import types

import pytest

from benchmarks import sampled, stacks

PROGRAM = """
import hashlib, pathlib, sys, threading, time
from benchmarks import sampled

def hashing(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        hashlib.pbkdf2_hmac("sha256", b"secret", b"salt", 2000)

def beside():
    hashing(0.5)

with sampled.watched(pathlib.Path(sys.argv[1])):
    hashing(0.5)
    other = threading.Thread(target=beside)
    other.start()
    other.join()
hashing(0.1)
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> list[stacks.Stack]:
    path = tmp_path_factory.mktemp("sampled") / "samples"
    subprocess.run([sys.executable, "-c", PROGRAM, str(path)], check=True)
    return list(stacks.read(path, begin=0, end=path.stat().st_size).elements())


def test_time_in_c_belongs_to_the_function_that_called_it(seen: list[stacks.Stack]) -> None:
    innermost = [stack[0].name for stack in seen]
    # A tick of the kernel is 10 ms at most, and half a second was worked.
    assert len(innermost) > 10
    assert innermost.count("hashing") > 0.8 * len(innermost)


def test_another_thread_and_what_comes_after_are_not_looked_at(seen: list[stacks.Stack]) -> None:
    # As much again was worked beside, and the timer counts no time of that.
    assert len(seen) <= 0.5 / (sampled.NANOSECONDS / 1e9) + 10
    assert not any(function.name == "beside" for stack in seen for function in stack)


def test_a_function_that_has_not_begun_has_cost_nothing() -> None:
    lines: list[bytes] = []

    def look(frame: types.FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_name == "begun":
            lines.append(sampled.stack_line(frame))

    def begun() -> int:
        return 1

    sys.setprofile(look)
    try:
        begun()
    finally:
        sys.setprofile(None)
    (line,) = lines
    assert stacks.parse(line.decode().strip())[0].name == "test_a_function_that_has_not_begun_has_cost_nothing"


def test_a_function_at_work_is_the_first_of_its_line() -> None:
    line = sampled.stack_line(sys._getframe()).decode()
    assert line.endswith("\n")
    assert stacks.parse(line.rstrip("\n"))[0] == (__file__, "test_a_function_at_work_is_the_first_of_its_line")
