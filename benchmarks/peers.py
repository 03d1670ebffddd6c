"""What other tools do and do not do: every cell of README's table is a check against the tool.

Each tool is installed in an environment of its own (``--environments FOLDER`` keeps them for the
next time); each check is a few lines of Python that run there, with the tool's folder first on the
path, and end without an error if the cell is true. A cell that is "no" looks for the feature where
it would have to be: in the tool's own modules and in its commands' help.

    python benchmarks/peers.py            # prints both tables, exit 1 if a cell is wrong
    python benchmarks/peers.py --write    # writes them into README and the first page of the site
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path

from measuring import ROOT, markdown, write_section

ATTEMPTS = "k fresh attempts per task"
PASS_HAT = "`pass^k`, unbiased"
INTERVAL = "an interval for `pass^k`"
REFUSES = "refuses `pass@10` from 5 attempts"
MISSING = "missing attempts apart from failed"
COMPARES = "paired comparison with a claim"
GATE = 'gate with "unsettled" as an answer'
FORECAST = "forecast of `pass^k` beyond n"
PLAN = "how many more for an answer"
LABELS = "corrects a judge's errors by labels"
LOGS = "reads the others' logs"
ROWS = (
    ATTEMPTS,
    PASS_HAT,
    INTERVAL,
    REFUSES,
    MISSING,
    COMPARES,
    GATE,
    FORECAST,
    PLAN,
    LABELS,
    LOGS,
)

HELP = """
import os, subprocess, sys, pathlib, re
BIN = pathlib.Path(os.environ.get('PEER_BIN') or pathlib.Path(sys.executable).parent)
def run(*words, code=None):
    done = subprocess.run([BIN / words[0], *words[1:]], capture_output=True, text=True)
    assert code is None or done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr
def raises(work):
    try: work()
    except (Exception, SystemExit): return True
    return False
def absent(package, pattern):
    import importlib.util
    if (BIN.parent / package / 'dist' / 'src').exists():  # npm
        root, ending = BIN.parent / package / 'dist' / 'src', '*.js'
    else:
        root, ending = pathlib.Path(importlib.util.find_spec(package).origin).parent, '*.py'
    texts = ((str(p), p.read_text(errors='replace')) for p in root.rglob(ending))
    found = [path for path, text in texts if re.search(pattern, text)]
    assert not found, found
"""
NO_PASS_HAT = r"pass\^k|pass_hat|pass\*\*k"


@dataclass(frozen=True)
class Peer:
    """A tool: its name, the package to install, and a text and a check for each row."""

    name: str
    package: str
    cells: dict[str, tuple[str, str]]


def no(package: str, pattern: str) -> tuple[str, str]:
    """A feature whose word is nowhere in the tool's modules."""
    return "no", f"absent({package!r}, {pattern!r})"


INSPECT = """
from inspect_ai import Epochs, Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.scorer import match
samples = [Sample(input='2+2?', target='4', id=i) for i in range(2)]
def epochs(reducer, **more):
    task = Task(dataset=samples, scorer=match(), **more)
    return eval(task, model='mockllm/model', epochs=Epochs(5, reducer), display='none',
                log_dir='logs', fail_on_error=False)[0]
"""
FORECASTS = r"extrapolat\w+.{0,40}pass|forecast.{0,40}pass"
LABEL_WORDS = r"\bppi\b|prediction.powered|rogan|gladen"
FIVE = "{'t': np.array([1, 1, 1, 0, 0]), 'u': np.array([1, 0, 1, 1, 0])}"

PEERS = (
    Peer(
        "inspect_ai",
        "inspect-ai",
        {
            ATTEMPTS: ("epochs", INSPECT + "assert len(epochs('pass_k_2').samples) == 10"),
            PASS_HAT: (
                "`pass_k` reducer",
                "from inspect_ai.scorer import pass_k, Score\n"
                "found = pass_k(2)([Score(value=v) for v in (1, 1, 1, 0, 0)])\n"
                "assert abs(found.value - 0.3) < 1e-9",
            ),
            INTERVAL: ("`ci()`, over samples", "from inspect_ai.scorer import ci, ci_wilson"),
            REFUSES: ("yes", INSPECT + "assert raises(lambda: epochs('pass_at_10'))"),
            MISSING: (
                "errors are listed",
                INSPECT + "from inspect_ai.solver import solver\n"
                "@solver\n"
                "def broken():\n"
                "    async def solve(state, generate): raise ValueError('no')\n"
                "    return solve\n"
                "log = epochs('mean', solver=broken())\n"
                "assert all(sample.error for sample in log.samples)",
            ),
            COMPARES: ("no", "assert 'compare' not in run('inspect', '--help')"),
            GATE: ("no", "assert 'gate' not in run('inspect', '--help').split()"),
            FORECAST: no("inspect_ai", FORECASTS),
            PLAN: ("no", "assert 'plan' not in run('inspect', '--help').split()"),
            LABELS: no("inspect_ai", r"\bppi\b|rogan"),
            LOGS: ("its own", "assert 'convert' in run('inspect', 'log', '--help')"),
        },
    ),
    Peer(
        "promptfoo",
        "npm:promptfoo",
        {
            ATTEMPTS: ("`--repeat`", "assert '--repeat' in run('promptfoo', 'eval', '--help')"),
            PASS_HAT: no("promptfoo", r"pass\^k|pass_hat"),
            INTERVAL: no("promptfoo", r"confidence interval|wilson"),
            REFUSES: ("no `pass@k`", "absent('promptfoo', r'pass@k|pass_at_k')"),
            MISSING: (
                "errors are listed",
                "assert 'excludes errors' in run('promptfoo', 'eval', '--help')",
            ),
            COMPARES: no("promptfoo", r"mcnemar|bootstrapCi|pairedTest"),
            GATE: no("promptfoo", r"INCONCLUSIVE|unsettled"),
            FORECAST: no("promptfoo", r"forecast.{0,40}pass"),
            PLAN: no("promptfoo", r"statistical power|sampleSizeFor"),
            LABELS: no("promptfoo", r"prediction.powered|rogan"),
            LOGS: ("OpenAI Evals", "assert 'OpenAI Evals' in run('promptfoo', 'import', '--help')"),
        },
    ),
    Peer(
        "DeepEval",
        "deepeval",
        {
            ATTEMPTS: (
                "`--repeat`",
                "assert '--repeat' in run('deepeval', 'test', 'run', '--help')",
            ),
            PASS_HAT: no("deepeval", NO_PASS_HAT),
            INTERVAL: no("deepeval", r"confidence_interval|wilson"),
            REFUSES: (
                "no",
                "import sys, subprocess\n"
                "from deepeval.scorer import scorer\n"
                "source = pathlib.Path(scorer.__file__).read_text()\n"
                "body = source[source.index('def pass_at_k'):][:700]\n"
                "assert 'if n - c < k' in body and 'raise' not in body",
            ),
            MISSING: (
                "`--ignore-errors`",
                "assert '--ignore-errors' in run('deepeval', 'test', 'run', '--help')",
            ),
            COMPARES: no("deepeval", r"mcnemar|paired_t|ttest|bootstrap_ci"),
            GATE: no("deepeval", r"inconclusive|unsettled"),
            FORECAST: no("deepeval", FORECASTS),
            PLAN: no("deepeval", r"statistical power|power_analysis|sample_size_for"),
            LABELS: no("deepeval", LABEL_WORDS),
            LOGS: no("deepeval", r"from_inspect|read_promptfoo"),
        },
    ),
    Peer(
        "evalplus",
        "evalplus",
        {
            ATTEMPTS: (
                "`--n-samples`",
                "import inspect, evalplus.codegen\n"
                "assert 'n_samples' in inspect.signature(evalplus.codegen.run_codegen).parameters",
            ),
            PASS_HAT: no("evalplus", NO_PASS_HAT),
            INTERVAL: no("evalplus", r"confidence|wilson|bootstrap"),
            REFUSES: (
                "no",
                "from evalplus.eval import estimate_pass_at_k\n"
                "assert estimate_pass_at_k(5, [3], 10)[0] == 1",
            ),
            MISSING: no("evalplus", r"missing attempt|infrastructure|not_judged"),
            COMPARES: no("evalplus", r"mcnemar|paired|p_value"),
            GATE: no("evalplus", r"inconclusive|unsettled"),
            FORECAST: no("evalplus", FORECASTS),
            PLAN: no("evalplus", r"statistical power|sample_size_for"),
            LABELS: no("evalplus", LABEL_WORDS),
            LOGS: no("evalplus", r"inspect_ai|promptfoo"),
        },
    ),
    Peer(
        "agentrial",
        "agentrial",
        {
            ATTEMPTS: (
                "trials",
                "run('agentrial', 'init', code=0)\n"
                "text = run('agentrial', 'run')\n"
                "assert '95% CI' in text, text",
            ),
            PASS_HAT: no("agentrial", NO_PASS_HAT),
            INTERVAL: no("agentrial", NO_PASS_HAT),
            REFUSES: ("no `pass@k`", "absent('agentrial', r'pass@k|pass_at_k')"),
            MISSING: no("agentrial", r"missing attempt|not_judged|infrastructure error"),
            COMPARES: (
                "Fisher, not paired",
                "absent('agentrial', r'mcnemar|paired')\n"
                "from agentrial.metrics import statistical\n"
                "assert 'fisher' in pathlib.Path(statistical.__file__).read_text().lower()",
            ),
            GATE: no("agentrial", r"inconclusive|unsettled"),
            FORECAST: no("agentrial", FORECASTS),
            PLAN: no("agentrial", r"sample_size|power_analysis"),
            LABELS: no("agentrial", LABEL_WORDS),
            LOGS: no("agentrial", r"from_inspect|promptfoo.*json"),
        },
    ),
    Peer(
        "evalstats",
        "evalstats",
        {
            ATTEMPTS: (
                "reads results",
                "assert 'run' not in re.findall(r'^  (\\w+)', run('evalstats', '--help'), re.M)",
            ),
            PASS_HAT: no("evalstats", NO_PASS_HAT),
            INTERVAL: no("evalstats", NO_PASS_HAT),
            REFUSES: ("no `pass@k`", "absent('evalstats', r'pass@k|pass_at_k')"),
            MISSING: no("evalstats", r"missing attempt|not_judged|infrastructure"),
            COMPARES: (
                "yes",
                "import numpy as np, evalstats\n"
                "rng = np.random.default_rng(1)\n"
                "scores = rng.random((2, 40)) < np.array([[0.9], [0.3]])\n"
                "found = evalstats.pairwise_differences(scores.astype(float), 0, 1, rng=rng)\n"
                "assert found.ci_low > 0",
            ),
            GATE: no("evalstats", r"inconclusive|unsettled"),
            FORECAST: no("evalstats", FORECASTS),
            PLAN: no("evalstats", r"def \w*(sample_size|power)\w*\("),
            LABELS: ("PPI", "import evalstats.ppi"),
            LOGS: no("evalstats", r"from_inspect|promptfoo"),
        },
    ),
    Peer(
        "statgate",
        "statgate",
        {
            ATTEMPTS: ("reads results", "assert 'sequential' in run('statgate', '--help')"),
            PASS_HAT: no("statgate", NO_PASS_HAT),
            INTERVAL: no("statgate", NO_PASS_HAT),
            REFUSES: ("no `pass@k`", "absent('statgate', r'pass@k|pass_at_k')"),
            MISSING: no("statgate", r"missing attempt|not_judged|infrastructure"),
            COMPARES: ("yes", "import statgate.core.pairing, statgate.core.permutation"),
            GATE: (
                "`INCONCLUSIVE`",
                "import json\n"
                "for name, way in (('a', 0), ('b', 1)):\n"
                "    rows = [{'case_id': str(i), 'passed': i % 2 == way} for i in range(8)]\n"
                "    pathlib.Path(name + '.jsonl').write_text('\\n'.join(map(json.dumps, rows)))\n"
                "run('statgate', 'compare', 'a.jsonl', 'b.jsonl', code=2)",
            ),
            FORECAST: no("statgate", FORECASTS),
            PLAN: ("`power`", "assert 'power' in run('statgate', '--help')"),
            LABELS: no("statgate", LABEL_WORDS),
            LOGS: ("promptfoo", "import statgate.adapters.promptfoo"),
        },
    ),
    Peer(
        "agentrel",
        "agentrel",
        {
            ATTEMPTS: ("reads results", "absent('agentrel', r'subprocess|asyncio')"),
            PASS_HAT: (
                "yes",
                "import agentrel, numpy as np\n"
                f"assert abs(agentrel.pass_hat_k({FIVE}, 2).value - 0.3) < 1e-9",
            ),
            INTERVAL: (
                "bootstrap",
                "import agentrel, numpy as np\n"
                f"found = agentrel.pass_hat_k({FIVE}, 2)\n"
                "assert found.ci_low < found.value < found.ci_high",
            ),
            REFUSES: (
                "yes",
                "import agentrel, numpy as np\n"
                f"assert raises(lambda: agentrel.pass_at_k({FIVE}, 10))",
            ),
            MISSING: no("agentrel", r"missing attempt|not_judged|infrastructure"),
            COMPARES: ("yes", "import agentrel\nassert agentrel.compare_agents"),
            GATE: no("agentrel", r"inconclusive|unsettled"),
            FORECAST: no("agentrel", FORECASTS),
            PLAN: (
                "runs per task",
                "import agentrel\nassert agentrel.min_runs_for_ci_width(0.1, p=0.5)",
            ),
            LABELS: no("agentrel", LABEL_WORDS),
            LOGS: ("inspect", "import agentrel\nassert agentrel.from_inspect_log"),
        },
    ),
    Peer(
        "truescore",
        "truescore",
        {
            ATTEMPTS: ("reads results", "assert 'audit' in run('truescore', '--help')"),
            PASS_HAT: no("truescore", NO_PASS_HAT),
            INTERVAL: no("truescore", NO_PASS_HAT),
            REFUSES: ("no `pass@k`", "absent('truescore', r'pass@k|pass_at_k')"),
            MISSING: no("truescore", r"missing attempt|not_judged|infrastructure"),
            COMPARES: ("yes", "import truescore.compare\nassert truescore.compare.mcnemar"),
            GATE: no("truescore", r"inconclusive|unsettled"),
            FORECAST: no("truescore", FORECASTS),
            PLAN: (
                "labels, pairs",
                "import truescore.power\nassert truescore.power.required_pairs",
            ),
            LABELS: ("PPI++", "import truescore.correct"),
            LOGS: (
                "inspect, promptfoo, DeepEval",
                "import truescore.adapters as a\nassert a._is_inspect and a._is_deepeval",
            ),
        },
    ),
)

PASSHAT = Peer(
    "passhat",
    "",
    {
        ATTEMPTS: ("yes", "assert '-n' in run('passhat', 'run', '--help')"),
        PASS_HAT: (
            "any k up to n",
            "import passhat\n"
            "outcomes = passhat.Outcomes.from_counts(5, [3, 3])\n"
            "assert abs(passhat.estimate(outcomes, 'pass^2').value - 0.3) < 1e-9",
        ),
        INTERVAL: (
            "two, by population",
            "import passhat\n"
            "outcomes = passhat.Outcomes.from_counts(5, [3, 2, 5, 0, 4, 1])\n"
            "new = passhat.estimate(outcomes, 'pass^2', about='new-tasks')\n"
            "these = passhat.estimate(outcomes, 'pass^2', about='these-tasks')\n"
            "assert new.low < these.low < these.high < new.high",
        ),
        REFUSES: (
            "yes",
            "import passhat\n"
            "outcomes = passhat.Outcomes.from_counts(5, [3, 3])\n"
            "assert raises(lambda: passhat.estimate(outcomes, 'pass@10'))",
        ),
        MISSING: (
            "three policies, both extremes shown",
            "assert 'bound|fail|exclude' in run('passhat', 'report', '--help')",
        ),
        COMPARES: (
            "yes",
            "text = run('passhat', 'compare', 'example:helpdesk', code=0)\n"
            "assert 'careful' in text",
        ),
        GATE: (
            "yes",
            "rule = ('--run', 'careful', 'pass^8 >= 0.6')\n"
            "text = run('passhat', 'gate', 'example:helpdesk', *rule)\n"
            "assert 'settled' in text.lower(), text",
        ),
        FORECAST: (
            "yes",
            "one = ('example:helpdesk', '--run', 'careful')\n"
            "assert 'pass^32' in run('passhat', 'forecast', *one, '--metric', 'pass^32', code=0)",
        ),
        PLAN: (
            "tasks, attempts, labels",
            "run('passhat', 'plan', 'example:helpdesk', '--run', 'careful')",
        ),
        LABELS: (
            "yes, for `pass^k` too",
            "assert '--corrected' in run('passhat', 'report', '--help')",
        ),
        LOGS: (
            "about 30 formats",
            "import importlib.metadata as m, passhat.readers as r\n"
            "mappings = list((pathlib.Path(r.__file__).parent / 'mappings').glob('*.toml'))\n"
            "assert len(m.entry_points(group='passhat.readers')) + len(mappings) >= 30",
        ),
    },
)
TABLES = (
    ("Tools that run agents", ("inspect_ai", "promptfoo", "DeepEval", "evalplus", "agentrial")),
    ("Tools that read results", ("evalstats", "statgate", "agentrel", "truescore")),
)


def main() -> int:
    """Check every cell, and print or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environments", type=Path, help="keep the tools' environments here")
    parser.add_argument("--only", help="check this tool alone")
    parser.add_argument("--write", action="store_true", help="write the tables into the pages")
    options = parser.parse_args()
    wrong, versions = 0, {}
    with tempfile.TemporaryDirectory() as throwaway:
        folder = options.environments or Path(throwaway)
        for peer in (PASSHAT, *PEERS):
            if options.only not in (None, peer.name):
                continue
            python = environment(folder.resolve(), peer)
            bin_folder = commands(folder.resolve(), peer)
            versions[peer.name] = version(python, peer, bin_folder)
            for row in ROWS:
                text, code = peer.cells[row]
                failure = check(python, code, bin_folder)
                wrong += failure != ""
                print(
                    f"{'ok   ' if not failure else 'WRONG'} {peer.name}: {row}: {text}", flush=True
                )
                print(failure, end="")
    tables = "\n\n".join(table(title, names) for title, names in TABLES)
    cited = ", ".join(f"{name} {number}" for name, number in versions.items() if number)
    print(f"\n{tables}\n\n{cited}")
    if options.write and not wrong and options.only is None:
        for page in ("README.md", "docs/index.md"):
            write_section("peers", f"{tables}\n\nChecked against {cited}.", ROOT / page)
    return 1 if wrong else 0


def environment(folder: Path, peer: Peer) -> Path:
    """The Python of the tool's own environment; passhat's is this one."""
    if not peer.package or peer.package.startswith("npm:"):
        return Path(sys.executable)
    place = folder / peer.package
    python = place / "bin" / "python"
    if not python.exists():
        venv.create(place, with_pip=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, peer.package, "setuptools<81"], check=True, stderr=subprocess.DEVNULL)
    return python


def commands(folder: Path, peer: Peer) -> Path | None:
    """The folder of the commands of a tool from npm, which is installed if it is not there."""
    if not peer.package.startswith("npm:"):
        return None
    name = peer.package.removeprefix("npm:")
    place = folder / name
    if not (place / "node_modules" / name).exists():
        place.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "install", "--silent", name], cwd=place, check=True)
    return place / "node_modules" / ".bin"


def version(python: Path, peer: Peer, bin_folder: Path | None) -> str:
    """The version that is checked."""
    if not peer.package:
        return ""
    if bin_folder is not None:
        package = bin_folder.parent / peer.package.removeprefix("npm:") / "package.json"
        return str(json.loads(package.read_text(encoding="utf-8"))["version"])
    code = f"import importlib.metadata as m; print(m.version({peer.package!r}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True).stdout.strip()


def check(python: Path, code: str, bin_folder: Path | None) -> str:
    """Nothing, or how the check failed."""
    more = {"PEER_BIN": str(bin_folder)} if bin_folder else {}
    with tempfile.TemporaryDirectory() as place:
        done = subprocess.run(
            [python, "-c", HELP + code],
            cwd=place,
            capture_output=True,
            text=True,
            env={**os.environ, "NO_COLOR": "1", "COLUMNS": "200", "HOME": place, **more},
        )
    return "" if done.returncode == 0 else done.stdout[-1500:] + done.stderr[-1500:] + "\n"


def table(title: str, names: tuple[str, ...]) -> str:
    """The cells of some tools beside passhat's."""
    peers = [PASSHAT, *(peer for name in names for peer in PEERS if peer.name == name)]
    rows = [(row, *(peer.cells[row][0] for peer in peers)) for row in ROWS]
    return markdown((title, *(peer.name for peer in peers)), rows)


if __name__ == "__main__":
    sys.exit(main())
