"""The JSON API over HTTP."""
