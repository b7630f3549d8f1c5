"""Commands for an installation as a whole: set it up (`init.py`), run it (`serve.py`), check and back it up."""
