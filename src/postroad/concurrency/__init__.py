"""Product-independent building blocks for concurrent work: batcher, fair shares, caches, single flight, poll loop."""
