"""Many accounts that may send, written straight into the tables: each with credits, a verified domain and an API key.

The secrets are made here, because the service stores only their hashes.
"""

import pathlib
import time

from benchmarks.peers import postroad, stores
from postroad.keys import installation_keys

# The number has as many digits as `message.SERIAL`, so that all requests have the same length.
DOMAIN = "d{number}.example.com"
DIGITS = 12
CREDITS = 1_000_000
# Until the domains are checked again: later than any run ends. Otherwise all would be due at once, and get their keys.
DAY = 86_400 * 1_000_000
# Rows of one statement: PostgreSQL parses longer ones slowly.
ROWS = 500
# The engines' words for bytes given as hexadecimal digits, by the name of their type.
BYTES = {"BLOB": "X'{digits}'", "BYTEA": "'\\x{digits}'"}


def fill(store: stores.Store, path: pathlib.Path, *, accounts: int) -> None:
    """Create the accounts, and write a line of API key and number of the domain for each into the file."""
    now = time.time_ns() // 1000
    secrets = [installation_keys.new_api_key() for _ in range(accounts)]
    rows = [_rows(number, secret, now=now, bytes_type=store.bytes_type) for number, secret in enumerate(secrets)]
    statements = [
        f"{head}\n{','.join(group)};"
        for head, table in zip(HEADS, zip(*rows, strict=True), strict=True)
        for group in (table[at : at + ROWS] for at in range(0, accounts, ROWS))
    ]
    store.load("\n".join(statements))
    path.write_text("".join(f"{secret} {number:0{DIGITS}}\n" for number, secret in enumerate(secrets)))


HEADS = (
    "INSERT INTO accounts (id, name, name_key, status, available, reserved, created_at) VALUES",
    "INSERT INTO ledger (account_id, id, kind, available, reserved, created_at) VALUES",
    "INSERT INTO domains (id, account_id, name, verified_at, created_at, verified_by, check_at) VALUES",
    "INSERT INTO credentials (id, account_id, name, username, password_hash, created_at) VALUES",
    "INSERT INTO api_keys (id, account_id, credential_id, name, key_hash, hint, scopes, created_at) VALUES",
)


def _rows(number: int, secret: str, *, now: int, bytes_type: str) -> tuple[str, ...]:
    """What the tables have of one account, in the order of the heads."""
    own = f"{number:028x}"
    account, credential = f"'acc_{own}'", f"'cred_{own}'"
    name, domain = f"'{postroad.ACCOUNT} {number}'", DOMAIN.format(number=f"{number:0{DIGITS}}")
    digest = BYTES[bytes_type].format(digits=installation_keys.hash_api_key(secret).hex())
    return (
        f"({account}, {name}, {name.lower()}, 'active', {CREDITS}, 0, {now})",
        f"({account}, 'led_{own}', 'grant', {CREDITS}, 0, {now})",
        f"('dom_{own}', {account}, '{domain}', {now}, {now}, 'operator', {now + DAY})",
        f"({credential}, {account}, 'sender', 'smtp_{own}', 'none', {now})",
        f"('key_{own}', {account}, {credential}, 'sender', {digest}, '{secret[:12]}…', 'send', {now})",
    )
