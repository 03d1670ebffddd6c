"""A million attempts must fit into 400 MB, all of Python included."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LIMIT = 400 * 1024 * 1024

READ_AND_REPORT = """
import resource, sys
from pathlib import Path
from passhat.cli import main
code = main(["report", sys.argv[1], "--json"])
status = Path("/proc/self/status")
if status.exists():
    # Not getrusage: on Linux its peak starts at that of the process which started this one.
    peak = next(int(line.split()[1]) for line in status.open() if line.startswith("VmHWM")) * 1024
else:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(code, peak, file=sys.stderr)
"""


def test_a_million_attempts_are_reported_in_under_400_mb(tmp_path: Path) -> None:
    path = tmp_path / "million.csv"
    with path.open("w") as stream:
        stream.write("model,task,trial,success,duration,cost\n")
        for task in range(5000):
            stream.writelines(
                f"agent,suite/task-{task},{i},{(task + i) % 3 % 2},{i}.5,0.0{i}\n"
                for i in range(200)
            )
    done = subprocess.run(
        [sys.executable, "-c", READ_AND_REPORT, str(path)], capture_output=True, text=True
    )
    code, peak = map(int, done.stderr.split())
    assert code == 0
    assert '"attempts": 1000000' in done.stdout
    assert peak < LIMIT, f"{peak / 2**20:.0f} MB"
