"""What frontends and the writer process say to each other."""
