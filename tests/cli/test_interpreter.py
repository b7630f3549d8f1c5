"""What a long-running process asks of the interpreter, seen in a process of its own: it changes the whole of it."""

import subprocess
import sys

SETTLED = """
import gc, sys
from postroad.cli.installation import serve
serve.tune_interpreter()
print(gc.isenabled(), gc.get_threshold()[0], gc.get_freeze_count() > 1000, sys.getswitchinterval())
"""


def test_a_settled_process_still_collects_but_less_often_and_not_what_was_imported() -> None:
    printed = subprocess.run([sys.executable, "-c", SETTLED], capture_output=True, text=True, check=True).stdout
    assert printed.split() == ["True", "20000", "True", "0.0005"]
