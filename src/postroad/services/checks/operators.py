"""The people who operate the installation: a password alone should not open it."""

from collections.abc import Sequence

from postroad.services.checks import findings, subject
from postroad.storage import second_factors


async def second_factors_of_operators(given: subject.Subject) -> Sequence[findings.Finding]:
    """Every operator needs a second factor."""
    if given.settings.security.operator_second_factor:
        return [findings.ok("a second factor is required for operators")]
    if given.store is None:
        return [findings.skipped("the database cannot be used")]
    async with given.store.reading() as tx:
        without = await second_factors.operators_without(tx)
    if not without:
        return [findings.ok("no operator can log in with a password alone")]
    return [
        findings.warning(
            f"operators who can log in with a password alone: {without}",
            "set security.operator_second_factor = true; they must then set one up when they next log in",
        )
    ]
