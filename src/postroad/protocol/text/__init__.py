"""Texts: JSON, templates, HTML, CSV, and values in HTTP header fields."""
