"""Packages of Postroad, tried on systems as their users have them: `make test-packages`."""
