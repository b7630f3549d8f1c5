"""What people read: the table of rows and languages, each failure, and a box about what could not run."""

from collections.abc import Sequence

from clients.conformance.runner import Report


def markdown(reports: Sequence[Report]) -> str:
    """The table."""
    shown = [report for report in reports if not report.missing]
    rows = list(dict.fromkeys(row for report in shown for row in report.rows))
    cells = [[row, *(_cell(report, row) for report in shown)] for row in rows]
    lines = [["scenario", *(report.language.title for report in shown)], *cells]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = [" | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    rule = " | ".join("-" * width for width in widths)
    return "\n".join(f"| {line} |" for line in [padded[0], rule, *padded[1:]])


def _cell(report: Report, row: str) -> str:
    found = report.rows.get(row)
    return "-" if found is None else "FAILED" if found else "ok"


def failures(reports: Sequence[Report]) -> list[str]:
    """A paragraph for each row that failed, with what was expected and what came."""
    return [
        f"FAILED {report.language.title}: {row}\n"
        + "\n".join(f"    {line}" for text in found for line in text.splitlines())
        for report in reports
        for row, found in report.failures.items()
    ]


def box(reports: Sequence[Report]) -> str:
    """The languages that could not run, and what would mend it; empty when all did."""
    lines = []
    for report in reports:
        if report.missing:
            lines += [
                f"{report.language.title} COULD NOT RUN: {', '.join(report.missing)} is missing.",
                f"    {report.language.remedy()}",
            ]
    if not lines:
        return ""
    width = max(map(len, lines))
    edge = "#" * (width + 4)
    return "\n".join([edge, *(f"# {line.ljust(width)} #" for line in lines), edge])


def line(report: Report) -> str:
    """One line about a finished language."""
    if report.missing:
        return f"{report.language.title}: could not run, {', '.join(report.missing)} is missing"
    tried = [found for found in report.rows.values() if found is not None]
    return f"{report.language.title}: {sum(not found for found in tried)} ok, {len(report.failures)} failed"
