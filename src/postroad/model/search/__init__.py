"""The query language of the search box: from a text to terms (`search_query.py`)."""
