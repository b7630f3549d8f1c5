"""Tables and statements with which an installation is run."""
