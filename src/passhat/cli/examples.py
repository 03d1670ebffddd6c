"""Two examples for every command, shown at the end of its help and executed by the tests.

They work in the folder that ``passhat init`` and two runs of ``passhat run`` leave behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import click

__all__ = ["EXAMPLES", "add_examples"]

EXAMPLES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "init": ("passhat init", "passhat init my-evals"),
        "demo": ("passhat demo", "passhat demo -n 4 --store demo.db"),
        "run": (
            "passhat run -a demo:careful -s orderdesk/retail -n 4",
            "passhat run -a python:agent:answer -s jsonl:tasks.jsonl -n 8",
        ),
        "runs": ("passhat runs", "passhat runs --json"),
        "show": ("passhat show latest", "passhat show latest 'multiply#1'"),
        "rm": ("passhat rm latest~1 --yes", "passhat rm latest --yes"),
        "regrade": ("passhat regrade latest --dry-run", "passhat regrade latest"),
        "store check": ("passhat store check", "passhat store check --store .passhat/passhat.db"),
        "store copy": (
            "passhat store copy .passhat/passhat.db backup.db",
            "passhat store copy .passhat/passhat.db archive/runs.db",
        ),
        "store backup": (
            "passhat store backup backups/monday.db",
            "passhat store backup today.db --store .passhat/passhat.db",
        ),
        "store restore": (
            "passhat store restore .passhat/passhat.db --store restored.db",
            "passhat store restore .passhat/passhat.db --store copies/restored.db",
        ),
        "store merge": (
            "passhat store merge .passhat/passhat.db --store all.db",
            "passhat store merge .passhat/passhat.db .passhat/passhat.db --store both.db",
        ),
        "store vacuum": (
            "passhat store vacuum",
            "passhat store vacuum --transcripts-older-than 30d",
        ),
        "suites": ("passhat suites", "passhat suites | grep orderdesk"),
        "tasks": ("passhat tasks orderdesk/retail", "passhat tasks jsonl:tasks.jsonl"),
        "agents": ("passhat agents", "passhat agents | grep demo"),
        "config": ("passhat config", "passhat config -n 16"),
        "doctor": ("passhat doctor", "passhat doctor -a python:agent:answer -s jsonl:tasks.jsonl"),
        "report": ("passhat report", "passhat report example:helpdesk -k 1,2,4 --full"),
        "compare": (
            "passhat compare latest~1 latest --allow",
            "passhat compare example:helpdesk -k 1,4 --html compare.html",
        ),
        "view": ("passhat view --open", "passhat view --port 8000 --allow-run"),
        "gate": (
            "passhat gate latest 'pass^1 >= 0.5'",
            "passhat gate latest 'pass^1 >= base - 0.2' --against latest~1 --allow",
        ),
        "plan": (
            "passhat plan latest --metric pass^4 --half-width 0.05",
            "passhat plan --mean 0.7 --icc 0.3 --metric pass^4 --detect 0.1",
        ),
        "forecast": (
            "passhat forecast latest --metric pass^16",
            "passhat forecast latest --metric pass@100",
        ),
        "temperature fit": (
            "passhat temperature fit example:smollm2 -k 1,8",
            "passhat temperature fit example:smollm2 -k 1,8 --json",
        ),
        "temperature toy": (
            "passhat temperature toy",
            "passhat temperature toy --family exponential",
        ),
        "explain": ("passhat explain pass^4", "passhat explain pass^4 latest"),
        "figure": (
            "passhat figure curves latest -o curves.svg",
            "passhat figure article-sweep -o sweep.svg",
        ),
        "review": (
            "passhat review 'Our agent solves 70% of the tasks.'",
            "passhat review 'pass^4 rose to 72%.' --source example:helpdesk",
        ),
        "judge": (
            "passhat judge samples.jsonl -s code:ordercode",
            "passhat judge samples.jsonl -s code:ordercode --json",
        ),
        "sandbox check": ("passhat sandbox check", "passhat sandbox check --json"),
        "read": ("passhat read example:helpdesk", "passhat read latest --json"),
        "validate": (
            "passhat validate attempts.jsonl",
            "passhat validate attempts.jsonl --print-schema",
        ),
        "import": (
            "passhat import example:helpdesk",
            "passhat import example:helpdesk --store imported.db",
        ),
        "export": (
            "passhat export latest > baseline.jsonl",
            "passhat export latest --csv > attempts.csv",
        ),
        "serve": ("passhat serve", "passhat serve --port 0 --token SECRET"),
        "battle": (
            "passhat battle scenario.toml",
            "passhat battle scenario.toml -o result.json",
        ),
        "completion": (
            "passhat completion bash",
            'eval "$(passhat completion bash)"',
        ),
    }
)


def add_examples(command: click.Command, name: str) -> None:
    """Append the examples of a command, or of the commands of a group, to its help."""
    if isinstance(command, click.Group):
        for own, member in command.commands.items():
            add_examples(member, f"{name} {own}")
        return
    if name in EXAMPLES:
        lines = "\n".join(f"  {example}" for example in EXAMPLES[name])
        command.epilog = f"\b\nExamples:\n{lines}"
