"""Bounce classification: from a reply to its disposition, and the reasons that people read."""
