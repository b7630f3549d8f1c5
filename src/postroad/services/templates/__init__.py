"""Templates of messages: saved, versioned, drafted and rendered."""
