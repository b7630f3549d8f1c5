"""What a long-running process asks of the interpreter, seen in a process of its own: it changes the whole of it."""

import subprocess
import sys

from postroad.cli import interpreter_tuning

SETTLED = """
import gc, sys
from postroad.cli import interpreter_tuning
interpreter_tuning.tune_interpreter()
print(gc.isenabled(), gc.get_threshold()[0], gc.get_freeze_count() > 1000, sys.getswitchinterval())
"""


def test_a_settled_process_still_collects_but_less_often_and_not_what_was_imported() -> None:
    printed = subprocess.run([sys.executable, "-c", SETTLED], capture_output=True, text=True, check=True).stdout
    assert printed.split() == ["True", str(interpreter_tuning.GC_THRESHOLD), "True", "0.0005"]
