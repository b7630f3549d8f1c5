"""What commands are made of: the installation or server they work on, their output, lazy imports."""
