"""Results of recipients: outcomes of attempts, asynchronous bounces, complaints, and the bounce guard."""
