"""The certificates of listeners: from files, or from an authority (ACME)."""
