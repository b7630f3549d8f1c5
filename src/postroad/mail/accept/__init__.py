"""The way in for all mail: validation, limits, composing, and the accept transaction."""
