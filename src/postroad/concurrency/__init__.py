"""Product-independent building blocks for concurrent work: batcher, caches, single flight, poll loop."""
