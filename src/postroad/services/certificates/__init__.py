"""The certificates of listeners: from files."""
