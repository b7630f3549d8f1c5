"""The start of a process of the service: over when its own log says so."""

import contextlib
import pathlib
import sys

import pytest

from benchmarks.peers import postroad


def test_a_process_has_started_when_its_own_log_says_so(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "postroad.log"
    for number in (1, 2):
        with contextlib.ExitStack() as stack:
            says = f"import time; print('{postroad.STARTED.decode()}', flush=True); time.sleep(600)"
            service = postroad._start(stack, [sys.executable, "-c", says], log=log)
            assert service.poll() is None
        assert log.read_bytes().count(postroad.STARTED) == number
    # What an earlier one wrote does not count.
    with contextlib.ExitStack() as stack, pytest.raises(RuntimeError, match="ended with 3"):
        postroad._start(stack, [sys.executable, "-c", "raise SystemExit(3)"], log=log)
