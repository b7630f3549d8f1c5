"""Runs a script of this folder that uses a package of another service: JSON in, JSON out."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
SECONDS: Final = 120


async def run(program: str, script: str, given: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON value
    """What the script writes."""
    process = await asyncio.create_subprocess_exec(
        program,
        str(HERE / script),
        cwd=HERE,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(SECONDS):
            output, problems = await process.communicate(json.dumps(given).encode())
    except BaseException:
        process.kill()
        await process.wait()
        raise
    assert process.returncode == 0, problems.decode()
    return json.loads(output)


async def undeclared(declarations: str, values: Mapping[str, Any]) -> dict[str, list[str]]:
    """The members of what methods returned that are not as the declarations of a package promise, by method."""
    told = [
        {"class": name.split(".")[0], "path": name.split(".")[1:], "value": value} for name, value in values.items()
    ]
    given = {"file": str(HERE / "node_modules" / declarations), "results": told}
    found = await run("node", "declared_types.mjs", given)
    return {name: problems for name, problems in zip(values, found, strict=True) if problems}
