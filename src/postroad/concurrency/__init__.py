"""Product-independent building blocks for concurrent work: caches, single flight, poll loop."""
