"""DNS look-ups with small, typed and bounded answers."""
