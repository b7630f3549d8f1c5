"""What is sent next, and by which route: claims, provider queues, source addresses."""
