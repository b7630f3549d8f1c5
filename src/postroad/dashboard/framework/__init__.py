"""What pages are made of: requests, forms, cookies, the menu, rendering, static files, lists and code snippets."""
