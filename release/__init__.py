"""What makes a release: `make release`."""
