"""`python -m release.schema FILE`: holds a bill of materials against the schema of CycloneDX, with another library."""

import sys
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

if __name__ == "__main__":
    for name in sys.argv[1:]:
        problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(Path(name).read_text(encoding="utf-8"))
        if problem:
            sys.exit(f"{name} is not a valid CycloneDX 1.6 document: {problem}")
