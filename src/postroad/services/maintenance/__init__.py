"""Background maintenance: cleanup, retention, gauges, and the consistency check."""
