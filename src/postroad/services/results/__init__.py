"""What becomes of a recipient: outcomes of attempts, asynchronous bounces, complaints, and the bounce guard."""
