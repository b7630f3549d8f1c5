"""Building blocks for concurrent work that know nothing of the product: caches, single flights, poll loops."""
