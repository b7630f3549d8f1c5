"""Commands for an installation as a whole: set up, run, check, back up."""
