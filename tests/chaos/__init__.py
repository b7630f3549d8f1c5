"""The crash matrix: everything at once in real processes, killed at every boundary, and one reconciliation at the end.

In the order of a run: `trial` puts it together; `customers`, `load` and `flaky` are the world around the service;
`hosts` are its processes, each a `mortal` one; `killing` goes through the matrix of `boundaries`; `world` gathers what
everybody knows, `reconciling` holds it against each other, and `report` tells. `make chaos` runs it at length, on the
`databases` of both engines, with a bad one of the `networks` before PostgreSQL; `test_trial.py` is the short version.
"""
