"""SMTP over sockets: the server side with its policy, the client side, and content that is arriving."""
