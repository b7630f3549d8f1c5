"""HTTP/1.1 over sockets: the server, the client, and the client of our own API."""
