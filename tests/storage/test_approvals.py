"""Sends that wait are stored, and change their state from what it was."""

import msgspec

from postroad.storage.engine.store import Transaction
from postroad.storage.people import approvals
from postroad.storage.people.approvals import State

ROW = approvals.Approval(
    "apr_1", "acc_1", "key_1", "cred_1", "k", b"\x00hash", bool(1), bool(0), b"{}", 3, "req_1", State.PENDING, 7
)


async def test_an_approval_is_stored_once_and_decided_once(tx: Transaction) -> None:
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
