"""Messages as their account sees them: lookup and search, previews, downloads, and the development inbox."""
