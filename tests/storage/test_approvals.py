"""Sends that wait are stored from the version before on, and change their state from what it was."""

import msgspec

from postroad.model import key_limits
from postroad.storage import api_keys, approvals
from postroad.storage.approvals import State
from postroad.storage.store import Store
from tests.storage import samples
from tests.storage.schema_upgrade import SchemaUpgrade

ROW = approvals.Approval(
    "apr_1", "acc_1", "key_1", "cred_1", "k", b"\x00hash", bool(1), bool(0), b"{}", 3, "req_1", State.PENDING, 7
)


async def test_approvals_are_stored_from_the_version_before_on(empty: Store, upgrade: SchemaUpgrade) -> None:
    await upgrade.begin("approvals")
    octets = {"sqlite": "BLOB", "postgres": "BYTEA"}[empty.dialect]

    def old_key(key_id: str) -> str:
        """The statement of the version before."""
        return f"""
            INSERT INTO api_keys (id, account_id, credential_id, name, key_hash, hint, scopes, created_at, expires_at)
            VALUES ('{key_id}', 'acc_1', 'cred_1', 'shop', CAST('{key_id}' AS {octets}), '…', 'send', 1, 7)
        """  # noqa: S608 - of constants

    async with empty.transaction() as tx:
        await samples.add_account(tx)
        await tx.run_script(old_key("key_1"))
    await upgrade.finish()
    async with empty.transaction() as tx:
        # A neighbour of the version before still writes.
        await tx.run_script(old_key("key_2"))
        found = await api_keys.of_account(tx, "acc_1")
        assert [one.limits for one in found] == [key_limits.Limits(expires_at=7)] * 2
        await approvals.insert(tx, ROW)
        await approvals.insert(tx, msgspec.structs.replace(ROW, id="apr_2", body=b"other"))
        assert await approvals.of_account(tx, "acc_1", limit=10) == [msgspec.structs.replace(ROW, body=b"")]
        assert await approvals.count_pending(tx, "acc_1", "key_1", after=6) == (1, 1)
        assert await approvals.count_pending(tx, "acc_1", "key_2", after=6) == (1, 0)
        assert await approvals.count_pending(tx, "acc_1", "key_1", after=7) == (0, 0)
        assert await approvals.by_key(tx, "cred_1", "k") == ROW
        assert await approvals.by_id(tx, "acc_2", "apr_1") is None
        waiting = (State.PENDING, State.APPROVING)
        assert await approvals.set_state(tx, "acc_1", "apr_1", State.REJECTED, among=waiting)
        assert not await approvals.set_state(tx, "acc_1", "apr_1", State.APPROVED, among=waiting)
        assert not await approvals.set_state(tx, "acc_2", "apr_1", State.APPROVED, among=(State.REJECTED,) * 2)
        assert await approvals.decide(tx, "acc_1", "apr_1", State.APPROVED, among=(State.REJECTED,))
        decided = await approvals.by_id(tx, "acc_1", "apr_1")
        assert decided == msgspec.structs.replace(ROW, state=State.APPROVED, body=b"")
        assert await approvals.sweep_bodies(tx, before=8) == 0
        assert await approvals.sweep(tx, before=7) == 0
        assert await approvals.sweep(tx, before=8) == 1
