"""The files shown to teams are well-formed, and name what they should."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from passhat.cli.shared.exits import ExitCode

PAGE = (Path(__file__).parents[2] / "docs" / "teams.md").read_text(encoding="utf-8")


def test_compose_matrix_and_cluster_files_can_be_read() -> None:
    found = [
        yaml.safe_load(text) for text in re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.M | re.S)
    ]
    compose, job, matrix, cluster = found
    assert set(compose["services"]) == {"db", "runner"}
    assert compose["services"]["runner"]["environment"]["PASSHAT_STORE"].startswith("postgresql://")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["command"][:3] == ["passhat", "run", "--wait"]
    (rule,) = job["spec"]["podFailurePolicy"]["rules"]
    final = [ExitCode.USAGE, ExitCode.INCOMPLETE]  # those that another start does not change
    assert rule["onExitCodes"]["values"] == final
    assert len(matrix["strategy"]["matrix"]["shard"]) == 4
    assert any("10001" in line for line in cluster["head_start_ray_commands"])
