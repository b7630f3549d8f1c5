"""Texts: JSON, templates, HTML, forms, and values in HTTP header fields."""
