"""The conformance suite of the client libraries: `python -m clients.conformance`; README.md says what it is."""
