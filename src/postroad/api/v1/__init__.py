"""The management API under `/v1`, one module for each resource."""
