"""Product-independent building blocks for concurrent work: fair shares, caches, single flight, poll loop."""
