"""Background upkeep: cleanup, retention, gauges, and the consistency check."""
