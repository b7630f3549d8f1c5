"""The only place that opens sockets."""
