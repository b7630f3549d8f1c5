"""What is written down of it: results, leases, TLS results, the state of provider queues."""
