"""Days of delivery in virtual time: the real scheduler between a simulated store and a simulated internet."""
