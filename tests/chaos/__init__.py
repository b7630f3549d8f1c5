"""The crash matrix: everything at once in real processes, killed at every boundary, and one reconciliation at the end.

In the order of a run: `trial` puts it together; `customers`, `load` and `flaky_host` surround the service; `hosts`
are its processes, each a `crashing_process`; `fault_injection` goes through the matrix of `boundaries`; `snapshot`
collects what each party knows, `reconciliation` compares it, and `report` writes the result. `make chaos` runs it at
length, on the `databases` of both engines, with a faulty one of the `networks` in front of PostgreSQL; `test_trial.py`
is the short version.
"""
