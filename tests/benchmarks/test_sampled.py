"""Samples of a stack: C belongs to the function that called it, and nothing after the watch is seen."""

import pathlib
import subprocess
import sys

from benchmarks import stacks

PROGRAM = """
import hashlib, pathlib, sys, time
from benchmarks import sampled

def hashing(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        hashlib.pbkdf2_hmac("sha256", b"secret", b"salt", 2000)

def after():
    hashing(0.1)

with sampled.watched(pathlib.Path(sys.argv[1])):
    hashing(0.3)
after()
"""


def test_time_in_c_belongs_to_the_function_that_called_it(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "samples"
    subprocess.run([sys.executable, "-c", PROGRAM, str(path)], check=True)
    seen = list(stacks.read(path, begin=0, end=path.stat().st_size).elements())
    innermost = [stack[0].name for stack in seen]
    # A tick of the kernel is 10 ms at most, and 0.3 s were worked.
    assert len(innermost) > 10
    assert innermost.count("hashing") > 0.8 * len(innermost)
    assert not any(function.name == "after" for stack in seen for function in stack)
