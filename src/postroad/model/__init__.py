"""Facts and decisions, pure: time, randomness and ids are arguments."""
