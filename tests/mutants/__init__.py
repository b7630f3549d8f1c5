"""`make mutants`: small faults, put into one module at a time, each of which a test must notice."""
