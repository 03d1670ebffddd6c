"""The meaning of the columns of a table: a list of names, for files and for records."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType

from passhat._display import some
from passhat.errors import InvalidValue

SLICE_PREFIX = "slice:"
EVERY_COLUMN = "@column"
"""As the column of ``model`` or ``trial``: every column of verdicts is one."""
JOIN_SIGN = "+"
"""Between columns that name a task or a model together, as in ``subject+question_id``."""
EVERY_PART = f"{JOIN_SIGN}{EVERY_COLUMN}"
"""Behind the column of ``task``: every column of verdicts is a task, as in ``day+@column``."""

# The first name is passhat's own; among the others an earlier one wins over a later one.
ALIASES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "model": (
            *("model", "agent", "model_name", "agent_name", "system", "llm", "model_id"),
            *("agent_id", "model_name_or_path", "modelo", "modell", "modèle", "modello", "модель"),
            *("agente", "sistema", "système", "sprachmodell", "ki_modell", "ki_agent"),
            *("模型", "モデル", "모델"),
        ),
        "suite": ("suite", "benchmark", "dataset", "set"),
        "task": (
            *("task", "task_id", "item", "item_id", "question_id", "question", "problem_id"),
            *("instance_id", "example_id", "sample_id", "doc_id", "test_id", "case_id"),
            *("scenario_id", "prompt_id", "query_id", "task_name", "test_name", "test_case"),
            *("testcase", "problem", "scenario", "instance", "example", "test", "testfall"),
        ),
        "trial": (
            *("trial", "attempt", "epoch", "sample", "run", "seed", "repeat", "repetition"),
            *("trial_id", "trial_index", "attempt_id", "attempt_index", "attempt_number"),
            *("repetition_number", "repeat_index", "run_index", "sample_index", "iteration"),
            *("trial_number", "trial_no", "trial_num", "attempt_no", "attempt_num", "run_number"),
            *("run_no", "run_num", "run_id", "rollout", "rollout_id", "rollout_index"),
            *("replicate", "rep", "round", "try", "generation_id", "completion_id", "sample_idx"),
            *("versuch", "durchlauf", "lauf", "essai", "tentative", "intento", "tentativa"),
            *("durchgang", "wiederholung", "ejecución", "exécution", "esecuzione", "execução"),
            *("попытка", "试次", "試行", "시도"),
        ),
        "success": (
            *("success", "passed", "correct", "resolved", "is_resolved", "is_correct", "is_right"),
            *("is_success", "is_passed", "solved", "is_solved", "succeeded", "accepted", "pass"),
            *("task_success", "task_passed", "task_solved", "task_completed", "overall_pass"),
            *("score_binarized", "binarized_score", "score_binary", "binary_score"),
            *("exact_match", "is_exact_match", "is_match", "match", "ok", "is_ok"),
            *("reward", "score", "verdict", "outcome", "pass_fail", "status", "result"),
            *("ergebnis", "résultat", "resultado", "risultato", "resultaat", "результат", "结果"),
            *("結果", "결과", "final_score", "total_score", "overall_score"),
            *("bestanden", "gelöst", "erfolg", "erfolgreich", "réussi", "réussite"),
            *("aprobado", "éxito", "superado", "aprovado", "sucesso", "successo", "superato"),
            *("пройден", "успех", "通过", "合格", "통과"),
        ),
        "score": ("score", "graded_score", "score_value", "reward", "partial_credit"),
        "n": (
            *("n", "attempts", "samples", "trials", "total", "runs", "n_attempts", "n_samples"),
            *("n_trials", "n_runs", "num_attempts", "num_samples", "num_trials", "num_runs"),
            *("total_attempts", "total_runs", "n_total", "num_total", "total_trials", "count"),
            *("n_attempted", "num_attempted", "n_sampled", "num_sampled", "n_generated"),
            *("versuche", "durchläufe", "essais", "tentatives", "intentos", "tentativas"),
            *("läufe", "anzahl_läufe", "anzahl_versuche", "anzahl_durchläufe", "nb_essais"),
            *("nombre_d'essais", "ejecuciones", "exécutions", "попыток", "次数", "回数"),
        ),
        "c": (
            *("c", "passes", "successes", "num_correct", "n_correct", "n_passed", "num_passed"),
            *("n_pass", "num_pass", "n_success", "num_success", "pass_count", "passed_count"),
            *("success_count", "correct_count", "n_successes", "num_successes", "n_solved"),
            *("num_solved", "solved_count", "wins", "passed_runs", "passing_runs"),
            *("n_passing", "num_passing"),
            *("successful_runs", "successful_attempts", "solved_attempts", "passed_attempts"),
            *("correct_attempts", "successful_trials", "passed_trials", "erfolge", "réussites"),
            *("succès", "aciertos", "éxitos", "acertos", "sucessos", "successi", "успехов"),
        ),
        "fails": (
            *("fails", "failures", "failed", "fail", "n_failed", "num_failed", "n_fail"),
            *("fail_count", "failed_count", "n_failures", "num_failures", "failure_count"),
            *("losses", "failed_runs", "failing_runs", "n_wrong", "num_wrong", "wrong_count"),
            *("n_incorrect", "num_incorrect", "incorrect_count"),
        ),
        "rate": (
            *("pass_rate", "passrate", "success_rate", "solve_rate", "accuracy", "rate"),
            *("pass@1", "pass^1", "pass_at_1", "pass_percentage", "percent_passed", "acc"),
            *("erfolgsquote", "erfolgsrate", "bestehensquote", "taux_de_réussite", "成功率"),
            *("taux_de_succès", "tasa_de_éxito", "taxa_de_sucesso", "通过率", "正确率", "正答率"),
        ),
        "missing": (
            *("missing", "m", "n_missing", "errors", "n_error", "n_errors", "num_errors"),
            *("error_count", "skipped", "n_skipped"),
        ),
        "temperature": ("temperature", "temp"),
        "duration": ("duration", "duration_s", "seconds", "latency_s"),
        "steps": ("steps", "num_steps", "turns"),
        "tokens": ("tokens", "total_tokens"),
        "cost": ("cost", "cost_usd", "agent_cost"),
        "failure": ("failure", "category", "failure_mode", "error_type", "reason"),
        "answer": ("answer", "answer_hash", "completion", "response", "output"),
        "expected": (),  # stated only: a column of right answers may be a task's text or its judge
    }
)

_WEAK_VERDICTS = ALIASES["success"][ALIASES["success"].index("verdict") :]
"""Names that hold verdicts in some tables and other words in others: taken when nothing else is."""

_RIVALS = ("tests_passed", "test_passed", "all_tests_passed", "all_passed", "checks_passed")
"""Names that hold verdicts, or numbers of tests: never taken, but compared with what is."""

_JUDGED = re.compile(
    r"(?:eval(?:uation)?|judge?ments?|judge|grad(?:e|er|ing)|verifier|verification|assessment|review)"
    r"\.\w+"
)
"""A field in what a judge said: compared with the verdict beside it, which may be a claim."""

_AGREEMENTS = ("match", "is_match")
_STATUS = re.compile(r".+_(status|verdict|outcome|result)")
"""Names of verdicts of which ``match`` may say no more than that they agree."""

_LONGEST_NAME = 200
"""No alias is as long; a header of megabytes is not searched for one."""

_NEGATIVE = re.compile(
    r"(is_|has_|was_)?(fail(s|ed|ure)?|wrong|incorrect|error(s|ed)?|crash(ed)?|unresolved|broken|"
    r"loss|exit_?code|return_?code|rc|bugs?|timed_?out|timeouts?|violations?|hallucinat(ed|ion)|"
    r"refus(al|ed)|truncated|skipped|flaky|mistakes?|regress(ed|ions?)|reverted)(_rate)?"
)
"""Names of columns in which true means that an attempt did not pass."""

MEASURES = re.compile(
    r".*(time|seconds|secs?|ms|cost|usd|tokens|latency|duration|steps|notes?|comments?|length|"
    r"kosten|dauer|coût|durée|jetons|coste|duración|bemerkung(en)?|remarque)",
    re.IGNORECASE,
)
"""Columns of times, costs and remarks."""

SUMMARIES = re.compile(
    r"(any|all|both|best|worst|majority|agree.*|tie|mean|avg|average|total|sum|std|max|min|"
    r"delta|Δ.*|diff.*|gain|lift|improvement|overall|flaky|stable|unanimous|consensus|median|stdev|sd|sem?|subtotal|gesamt|summe|"
    r"durchschnitt|mittel(wert)?|moyenne|promedio|média|totale|somma|suma|итого|всего|среднее|ø|"
    r"合计|总计|平均|合計|합계|평균)([\s_-].*)?|pass[@^]\w+|.*[\s_-](any|all)",
    re.IGNORECASE,
)
"""Columns that are made from others."""

RUN_NUMBERS = re.compile(
    r"(v|ver|version|sys|system|model|agent|bot|llm|cfg|config|variant|candidate|team|setup|ckpt|"
    r"checkpoint|vendor|provider|product|tool|assistant)[\s_.-]*(?:\d[\w.-]*|(?<=_)[a-z])"
)
"""Names of numbered models or settings: v1.4, sys12."""

PASS_TIMES = re.compile(
    r"(solved|passed|completed?|finished|done|fixed|resolved|succe\w+|captured|flag|merged)"
    r"_?(at|on|time|date|ts)?"
)
"""A time that is there where it passed."""

TRIAL_NAMES = re.compile(r"(.*_)?(run|trial|attempt|repeat|sample|iteration|round|seed)(_.*)?")

RATES = re.compile(
    r"(mean|avg|average|pass|share|rate|accuracy|acc)(_.*)?|"
    r"(.*_)?(rate|share|percent|pct|fraction|accuracy|acc|probability|threshold|confidence|mean|avg)"
)
"""Shares of several attempts, and numbers that are no result."""

ANSWER_NAMES = frozenset(
    {
        *("expected", "gold", "target", "answer", "response", "output", "pred", "prediction"),
        *("predicted", "label", "reference", "ground_truth", "correct_answer", "actual"),
    }
)
"""Columns whose words are answers: y among them is no yes."""

PARTS = re.compile(
    r"(.*_)?(tests?|checks?|steps?|asserts?|assertions|subtasks?|points?|criteria)(_.*)?"
)
"""Names of what a single attempt consists of."""

ANSWERS = re.compile(
    r"(.*_)?(pred(ict(ion|ed))?|guess|actual|got|answer|answered|output|response|completion|chosen|"
    r"choice|generated|extracted|parsed)(_.*)?|model_(?!name|id|version)\w+"
)
"""Names of what a model answered."""

KEYS = re.compile(
    r"(.*_)?(gold|target|label|reference|ground_truth|expected|gt|correct|truth|y_true|solution|"
    r"right|answer_key|true_\w+)(_.*)?|answer"
)
"""Names of right answers."""

PASS_MARKS = re.compile(
    r"(.*_)?(threshold|cutoff|cut_off|pass_mark|required|min_score|needed)(_.*)?"
)
"""Names of the score from which an attempt passes."""

TOTALS = re.compile(r"(.*_)?(total|n|num|count|all)(_.*)?")
"""Names of a number of all attempts."""

VERDICTS = re.compile(
    r"(.*_)?(pass(ed|es)?|success(ful)?|correct(ness)?|solved|resolved|succeeded|verified|accepted|"
    r"completed?|em|exact(_match)?|won|win|achieved|fixed|compliant|valid|ok|good|right|done|match(es|ed)?|"
    r"true_false|captured|label|met|reached|fulfilled|satisfied|works?|verdict|outcome|result|status|state|score|reward|grade|judge?ment|evaluation|hit|bool|binary)(_.*)?"
)
"""Names of what says whether an attempt passed."""

GRADES = re.compile(
    r"note|(.*_)?(score|reward|acc|accuracy|rate|f1|similarity|rating|grade|points|percent|pct|share|"
    r"fraction|mean|avg|average|quality|pass.*)(_.*)?"
)
"""Names of scores and shares."""

REASONS = re.compile(
    r"(.*_)?(errors?|exceptions?|failures?|fail|fails|failed|wrong|incorrect|unresolved|violations?|reason|bug|issue|traceback|stderr|problem|"
    r"fehler|erreur|fallo|diff|mismatch)(_.*)?"
)
"""Names of why an attempt failed."""

GOOD_WORDS = re.compile(
    r"(pass|correct|good|complet|success|succe|win|won|full|safe|solv|resolv|fixed|right|green|done|"
    r"accept|approv|valid|match|yes|ok|not[_ -]?(fail|mis|hijack|leak)|c$|a$|p$|1$)",
    re.IGNORECASE,
)
"""Beginnings of words for a pass."""

BAD_WORDS = re.compile(
    r"(fail|wrong|incorrect|bad|partial|incomplet|error|lose|lost|loss|unsafe|unsolv|unresolv|red|"
    r"timeout|timed|crash|abort|reject|invalid|no$|none|mis|i$|f$|0$|"
    r"not(?![_ -]?(fail|mis|hijack|leak|error)))",
    re.IGNORECASE,
)
"""Beginnings of words for a failure."""

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_WEEKDAY = r"(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?"
DATES = re.compile(
    r"\d{4}[-./]\d{1,2}[-./]\d{1,2}(?:[ T].*)?|\d{1,2}[-./]\d{1,2}[-./]\d{2,4}|"
    rf"(?:{_WEEKDAY}\s*)?(?:\d{{1,2}}\.?[\s-]*{_MONTH}|{_MONTH}[\s-]*\d{{1,2}})(?:,?\s*\d{{2,4}})?|"
    rf"{_WEEKDAY}",
    re.IGNORECASE,
)
"""Headings that are days."""

_UNIT = re.compile(
    r"(?<=\w)\s*[(\[](%|percent|pct|in %|s|ms|secs?|seconds|min|usd|\$|€|n|0[/-]1|[01]|y/n|yes/no|"
    r"[\d.,]+\s*(?:à|a|to|bis|[-–]|\.\.)\s*[\d.,]+|pass/fail|bool(ean)?|"
    r"true/false|max\.? \d+|out of \d+|[^()]*[<>≤≥=][^()]*)[)\]]\s*$|"
    r"(?<=\w)\s*%\s*$|^\s*%\s*(?=\w)",
    re.IGNORECASE,
)
"""A remark on the cells at the name of a column: "Pass rate (%)", "Solved (y/n)", "% solved"."""

_PREFIX = re.compile(
    r"(?:params?|metrics?|tags|config|summary|attributes|metadata|meta|info|results?|fields|outcome)"
    r"[./](?:mlflow[./])?(.+)",
    re.IGNORECASE,
)
"""Before the name of a column as trackers of experiments write it: params.model."""

_PERCENT = re.compile(r"%|(?<![a-z])(percent|pct)(?![a-z])", re.IGNORECASE)

_MARKS = re.compile(r"^[^\w\s!-~]+\s*|\s*[^\w\s!-~]+$")

_COUNTS = ("n", "c", "fails", "missing")
_LABELS_WITHOUT_ORDER = ("seed",)
"""A seed tells attempts apart, but a larger seed did not come later."""


@dataclass(frozen=True, slots=True)
class ColumnMap:
    """The meaning of each column of a table."""

    meaning: Mapping[str, str]
    slices: Mapping[str, str]
    ignored: tuple[str, ...]
    rivals: tuple[str, ...] = ()
    """Other columns that may hold the verdict, too."""
    stated: frozenset[str] = frozenset()
    """The words whose columns the user stated."""

    @classmethod
    def resolve(
        cls,
        columns: Iterable[str],
        overrides: Mapping[str, str] | None = None,
        labels: Iterable[str] = (),
    ) -> ColumnMap:
        """Recognise columns by name; ``overrides`` such as ``{"model": "llm"}`` win.

        ``labels`` are columns to keep as slices though they lack the prefix.
        """
        names = list(columns)
        overrides = overrides or {}
        _check_overrides(overrides, names)
        below = {match[1]: name for name in names if (match := _PREFIX.fullmatch(name[:200]))}
        by_alias = {fold_name(name): below[name] for name in reversed(below)}
        by_alias |= {fold_name(name): name for name in reversed(names)}
        meaning = dict(overrides)
        # A column that is joined into the task tells nothing else apart.
        mapped_names = {*overrides.values(), *overrides.get("task", "").split(JOIN_SIGN)}
        for word, aliases in ALIASES.items():
            column = next(
                (
                    by_alias[a]
                    for a in aliases
                    if by_alias.get(a) not in (None, *mapped_names)
                    and not (
                        word in _COUNTS
                        and (is_percent(by_alias[a]) or by_alias[a] in below.values())
                    )
                ),
                None,
            )
            if word not in meaning and column is not None:
                meaning[word] = column
                mapped_names.add(column)
        if "success" not in overrides and {"task", "n", "c"} <= meaning.keys():
            # Stated counts beat derived ones, unless a column numbers the attempts.
            is_attempt = "trial" in meaning and "n" not in overrides
            spare = ("n", "c") if is_attempt else ("success", "score")
            mapped_names -= {meaning.pop(word) for word in spare if word in meaning}
        rivals = (
            ()
            if "success" in overrides
            else tuple(
                by_alias[alias]
                for alias in (*ALIASES["success"], *_RIVALS)
                if alias not in _WEAK_VERDICTS
                and by_alias.get(alias) not in (None, *(mapped_names - {meaning.get("score")}))
            )
        )
        if "success" not in overrides:
            rivals += tuple(n for n in names if n not in mapped_names and _is_judged(n, rivals))
        if fold_name(meaning.get("success", "")) in _AGREEMENTS and "success" not in overrides:
            rivals += tuple(n for n in names if _STATUS.fullmatch(fold_name(n)) and n not in rivals)
        slices = {
            name.strip()[len(SLICE_PREFIX) :]: name
            for name in names
            if name.strip().lower().startswith(SLICE_PREFIX) and name not in mapped_names
        }
        slices |= {name: name for name in labels if name in names and name not in slices}
        extra_columns = tuple(
            n for n in names if n not in mapped_names and n not in slices.values()
        )
        return cls(
            MappingProxyType(meaning),
            MappingProxyType(slices),
            extra_columns,
            rivals if "success" in meaning else (),
            frozenset(overrides),
        )

    @property
    def holds_attempts(self) -> bool:
        """Whether a row is an attempt."""
        return "task" in self.meaning and "success" in self.meaning

    @property
    def holds_counts(self) -> bool:
        """Whether a row is a task, with n and c."""
        return {"task", "n", "c"} <= set(self.meaning) and "success" not in self.meaning

    @property
    def trial_gives_order(self) -> bool:
        """Whether a larger trial number means a later attempt."""
        column = self.meaning.get("trial")
        return column is not None and column.strip().lower() not in _LABELS_WITHOUT_ORDER

    def without(self, *words: str) -> ColumnMap:
        """The map with some meanings dropped; their columns are ignored."""
        removed_columns = [self.meaning[word] for word in words if word in self.meaning]
        meaning = {word: name for word, name in self.meaning.items() if word not in words}
        extra_columns = (*self.ignored, *removed_columns)
        return replace(self, meaning=MappingProxyType(meaning), ignored=extra_columns)

    def names_of(self, *words: str) -> dict[str, str]:
        """The columns with these meanings, where there are any."""
        return {word: self.meaning[word] for word in words if word in self.meaning}

    def sentences(self) -> tuple[str, ...]:
        """The meaning of the columns, for a person to check."""
        pairs = [f"{word} = {column!r}" for word, column in self.meaning.items()]
        pairs += [f"slice {name} = {column!r}" for name, column in self.slices.items()]
        lines = [f"columns: {', '.join(pairs)}"]
        if self.ignored:
            lines.append(f"columns ignored: {', '.join(self.ignored)}")
        return tuple(lines)

    def gaps(self) -> Iterator[str]:
        """Facts that the table does not give, and their consequences."""
        if "model" not in self.meaning:
            yield "no column for the model: the run is named after the file"
        if self.holds_attempts and "trial" not in self.meaning:
            yield "no column for the trial: the order of attempts is unknown"
        elif self.holds_attempts and not self.trial_gives_order:
            yield f"column {self.meaning['trial']!r} tells attempts apart but gives no order"


@lru_cache(4096)
def _is_judged(name: str, others: Sequence[str]) -> bool:
    """Whether a field in what a judge said is named for its verdict."""
    match = _JUDGED.fullmatch(name[:_LONGEST_NAME].lower())
    head, _, tail = name.lower().partition(".")
    is_named = match is not None and (tail in ALIASES["success"] or tail in (head, "decision"))
    return is_named and tail not in ("score", "reward") and name not in others


def fold_name(name: str) -> str:
    """The name of a column as aliases are written: ``task_id`` for ``Task ID`` and ``taskId``."""
    if len(name) > _LONGEST_NAME:
        return name
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", _UNIT.sub("", name))
    words = _MARKS.sub("", words) or words  # "Passed ✅"
    return re.sub(r"[\s/_-]+", "_", words.lower().strip(" \t#?*:")).strip("_")


def cross_headings(names: Sequence[str]) -> list[tuple[str, str, int]]:
    """Each name with its group and number, where several groups have the same: A V1, A V2, B V1."""
    pattern = re.compile(r"(.+)[\s_./|:-]+(?:([^\W\d_]{1,9}?)[\s_#-]?)?(\d+)")
    matches = [pattern.fullmatch(name.strip()) for name in names]
    parts = [(match[1], match[2], int(match[3])) for match in matches if match]
    groups = {
        first: [(stem, n) for group, stem, n in parts if group == first] for first, *_ in parts
    }
    is_crossed = len({tuple(sorted(each)) for each in groups.values()}) == 1
    if len(parts) < len(names) or not is_crossed or len({stem for _, stem, _ in parts}) > 1:
        return []
    if len(groups) < 2 or len(names) < 2 * len(groups):
        return []
    return [(name, group, n) for name, (group, _, n) in zip(names, parts, strict=True)]


def split_joined(column: str) -> list[str]:
    """The columns of ``subject+question_id``; a name that is none such is alone."""
    parts = column.split(JOIN_SIGN)
    return parts if all(parts) else [column]


def is_percent(name: str) -> bool:
    """Whether a heading says that its cells are shares of 100, not counts."""
    return _PERCENT.search(name) is not None


def is_negative(name: str) -> bool:
    """Whether true in a column of this name means a failure."""
    return _NEGATIVE.fullmatch(fold_name(name)) is not None


_SUCCESS = r"(?:success|succeeded|solved?|pass(?:ed)?|correct)"
_FIRST_SUCCESS = re.compile(
    rf"first_{_SUCCESS}(?:ful)?(?:_\w+)?|{_SUCCESS}_(?:(?:at|on|in)_)?(?:attempt|try|trial|run)(?:_\w+)?|"
    r"(?:n_|num_)?(?:attempts|tries|trials|runs)_(?:needed|required|to|until|till|before)(?:_\w+)?"
)


def is_first_success(name: str) -> bool:
    """Whether a column holds the number of the attempt that passed first, nothing for never."""
    return _FIRST_SUCCESS.fullmatch(fold_name(name)) is not None


def _check_overrides(overrides: Mapping[str, str], columns: list[str]) -> None:
    for word, column in overrides.items():
        if word not in ALIASES:
            near = difflib.get_close_matches(word, ALIASES, n=1)
            guess = f" Did you mean {near[0]!r}?" if near else ""
            raise InvalidValue(
                f"{word}={column}: {word!r} is not a column passhat knows.{guess}",
                hint=f"Known columns: {', '.join(ALIASES)}, and columns named slice:NAME.",
            )
        if column.startswith(EVERY_COLUMN) and word in ("model", "trial", "task"):
            continue
        if word == "success" and any(path.startswith(EVERY_COLUMN) for path in overrides.values()):
            continue  # the word in those columns that means a pass
        if word == "task":
            column = column.removesuffix(EVERY_PART)
        if column not in columns:
            raise InvalidValue(
                f"{word}={column}: the table has no column {column!r}.",
                hint=f"Its columns are: {some(columns, 20)}.",
            )
