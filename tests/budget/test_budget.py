"""A message costs what the budget says: no more, and not so much less that the budget means nothing."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

import pytest

BUDGET: Final = Path(__file__).with_name("budget.toml")
ROOT: Final = BUDGET.parents[2]
# What may be unused: a few calls depend on how the answers to a batch come in.
UNUSED_SHARE: Final = 0.08
UNUSED: Final = 1.5


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="asyncio makes other calls in other versions of Python")
@pytest.mark.parametrize("path", ["http", "smtp", "delivery", "webhook"])
def test_a_message_costs_what_the_budget_says(path: str) -> None:
    # In a process of its own, where no other test has left anything.
    command = [sys.executable, "-m", "tests.budget.measurement", path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    budget, counted = tomllib.loads(BUDGET.read_text())[path], json.loads(done.stdout)
    exceeded, unused = [], []
    for size, limits in budget.items():
        for what, limit in limits.items():
            count = counted[size][what]
            if count > limit:
                exceeded.append(f"{size}: {count} {what} instead of {limit}")
            if count < limit - UNUSED - limit * UNUSED_SHARE:
                unused.append(f"{size}: {count} {what} instead of {limit}")
    hint = f"python -m tests.budget.measurement {path} --batch shows what is called"
    assert not exceeded, f"more than the budget: {exceeded}; {hint}"
    assert not unused, f"less than the budget, lower it: {unused}"
