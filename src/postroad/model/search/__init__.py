"""The query language of the search box."""
