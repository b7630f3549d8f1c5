"""Door: JSON over HTTP."""
