"""The product's capabilities, grouped by folder."""
