"""The protocol between frontends and the writer process."""
