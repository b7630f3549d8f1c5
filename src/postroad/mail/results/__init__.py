"""What became of a message: results, bounces and complaints, and the bounce guard."""
