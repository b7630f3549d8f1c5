"""The page of costs."""

from benchmarks import cost_tables, phases


def _cost(path: str, microseconds: dict[str, float], *, problems: tuple[str, ...] = ()) -> cost_tables.Cost:
    functions = phases.Functions(own=[phases.Costliest("a.py:b", 30.0)], inclusive=[phases.Costliest("c.py:d", 40.0)])
    return cost_tables.Cost(
        path=path,
        messages=1000,
        samples=500,
        microseconds=microseconds,
        unsampled_microseconds=80.0,
        functions={"parse": functions},
        problems=problems,
    )


def test_a_row_for_each_phase_that_costs_anything_and_the_sum() -> None:
    costs = [_cost("over HTTP", {"parse": 60.0, "store": 40.0}), _cost("over SMTP", {"parse": 100.0, "sign": 0.0})]
    lines = cost_tables.page(costs, description="Words.", facts={"cores": "2"}, gaps=[]).splitlines()
    assert "| phase | what it is | over HTTP: µs | % | over SMTP: µs | % |" in lines
    assert f"| parse | {phases.PHASES['parse']} | 60 | 60.0 | 100 | 100.0 |" in lines
    assert f"| store | {phases.PHASES['store']} | 40 | 40.0 | - | - |" in lines
    assert "| all | the sum | 100 | 100 | 100 | 100 |" in lines
    assert not any(line.startswith("| sign |") for line in lines)
    assert "| parse | 60 | `c.py:d` 40 | `a.py:b` 30 |" in lines
    assert "| cores | 2 |" in lines


def test_what_sampling_costs_and_what_went_wrong_is_said() -> None:
    costs = [_cost("over HTTP", {"parse": 100.0}, problems=("two are missing",))]
    page = cost_tables.page(costs, description="Words.", facts={}, gaps=["no wrk"])
    assert "Without sampling a message costs 80 µs, so sampling costs +25.0 %." in page
    assert "- PROBLEM, over HTTP: two are missing" in page
    assert "- INCOMPLETE: no wrk" in page
