"""The operator console at `/operator`: pages about the whole installation, for operators (`console.py`)."""
