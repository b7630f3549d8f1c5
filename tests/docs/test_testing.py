"""docs/testing.md: its tables are those of the simulator."""

import re
from pathlib import Path

from postroad.model.mail import simulated_outcomes

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()


def rows(title: str) -> list[list[str]]:
    """The cells of the table under a heading, without its head."""
    section = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    lines = re.findall(r"(?m)^\| .* \|$", section)[1:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_local_part_is_documented() -> None:
    named = {row[0].strip("`") for row in rows("Addresses")}
    assert named == {outcome.value or "anything else" for outcome in simulated_outcomes.SimulatedOutcome}


def test_every_behaviour_is_documented_with_the_codes_of_each_provider() -> None:
    documented = {row[0].strip("`"): row[1:5] for row in rows("Providers")}
    assert documented.keys() == {behaviour.value for behaviour in simulated_outcomes.ProviderBehaviour}
    for behaviour, cells in documented.items():
        for provider, cell in zip(simulated_outcomes.SimulatedProvider, cells, strict=True):
            attempt = simulated_outcomes.provider_attempt(f"{provider}/{behaviour}", attempts=0)
            assert attempt is not None
            reply = attempt.result.reply
            assert cell == (f"{reply.code} {reply.enhanced}".strip() if reply else "no connection")
