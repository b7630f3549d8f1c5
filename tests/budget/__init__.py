"""What a message costs, in counts that are the same on every machine: a budget that a change has to keep or to change.

`measurement` runs the service in a process of its own and counts; `budget.toml` has the numbers, and why each is what
it is; `test_budget.py` compares. `python -m tests.budget.measurement delivery --batch` prints the functions behind the
counts of a path.
"""
