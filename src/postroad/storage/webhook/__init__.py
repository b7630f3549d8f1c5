"""Tables of webhook endpoints, and of deliveries to them."""
