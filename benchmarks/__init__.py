"""Benchmarks of Postroad beside its peers.

Each benchmark is a module to run (`python -m benchmarks.accept`) and builds on the same pieces: `message` says what
is sent, `injectors` send it, `peers` start and stop what is measured, `measure` reads the costs from the kernel,
`report` writes the figures down. The rule: every peer is measured in the same run, on the same disk, with real
durability.
"""
