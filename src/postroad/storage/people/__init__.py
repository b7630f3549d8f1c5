"""Tables of accounts and of the people and programs that use them."""
