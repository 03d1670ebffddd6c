"""A sentence of a claim with its numbers, the words that say what they count, and its names."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from passhat.reporting.review.grammar import BOUND_WORDS, P_VALUE, Reader
from passhat.reporting.review.rewrites import DROPPED, TRIAL, plain_number
from passhat.reporting.review.roles import BOUND
from passhat.reporting.review.statements import (
    ATTEMPTS,
    ERRORS,
    INTERVALS,
    METRIC,
    NUMBER,
    OF_A_LIFT,
    TASKS,
    spread_of,
)

__all__ = ["HOW_MANY", "Cue", "MarkedSentence", "Number", "kind_of", "plain_count"]

_ATT, _TASK, _N = ATTEMPTS, TASKS, NUMBER
_OF = r"(?: of)?(?: the| its| their| these| our| those)*"
_EACH = (
    rf"(?:each|every|all of the \d+ (?:{_TASK})|per (?:{_TASK})|apiece|for each|at each|on each|"
    r"for every|at every)"
)
# Words that say what a number counts: a phrase and the metric it means; K is the number in it.
_CUES: tuple[tuple[str, str], ...] = (
    (TRIAL, ":trial"),
    (
        rf"\b(?:in |on |at |with )?(?:some|several|a few|part|only some){_OF} (?:\d+ )?(?:{_ATT})"
        rf"?(?:,? (?:but not|and (?:fail|miss)\w*) (?:in |on |with )?(?:the )?(?:all|every|"
        rf"each|others?|rest)\b(?:{_OF}(?: them| {_ATT})?)?)",
        "~n",
    ),
    (
        r"\b(?:sometimes|occasionally|intermittent\w*|flaky|flakily|inconsistent\w*|"
        r"mixed(?: results| outcomes)?)\b",
        "~n",
    ),
    (r"\bwithout (?:a single|a|any|one) (?:failure|error|miss|mistake|slip)s?\b(?! in\b)", "^n"),
    (r"\bnever (?:once |even |ever )?(?:fail|miss|break|got? it wrong|gets it wrong)\w*", "^n"),
    (
        rf"\b(?:in|on|with|for|after|of) (?:none|no (?:single )?(?:{_ATT})|not (?:a single |"
        rf"1 )(?:{_ATT})?)\b(?:{_OF}(?: (?P<k>\d+))? (?:{_ATT}|them))?|\bnot once\b|"
        r"\b(?:never|not at all|(?:0|no) times|came up empty every time|out of reach)\b|"
        rf"\b0 of{_OF} (?P<k2>\d+) (?:{_ATT})\b",
        "<0",
    ),
    (
        rf"\b(?P<k>\d+)(?: times| (?:{_ATT}))? ?(?:out of|of|/|in every) ?(?P=k)(?! (?:{_TASK})"
        rf")(?: (?:{_ATT}))?\b",
        "^",
    ),
    (
        r"\b(?:in |on |at |with |across |over |of )?(?:all|(?:each|every)(?! \d)"
        rf")(?: single)?(?: 1)?{_OF}(?: (?P<k>\d+))?(?: \w+)? (?:{_ATT})\b(?! (?:at|"
        r"of|on|per) (?:each|every))|\b(?:every|each)(?: single)? time\b|\bwithout fail\b|"
        r"\balways\b|\bconsistently\b|\breliably\b|\bperfectly consistent\b|\bboth (?:times|"
        rf"(?:{_ATT}))\b|\ball (?P<k2>\d+)(?= (?:succeed|pass|must)|[,.;)]|$)",
        "^",
    ),
    (
        rf"\b(?P<k>\d+) (?:{_ATT} )?in a row\b|\b(?P<k2>\d+) (?:consecutive|straight|successive)\b",
        "^",
    ),
    (
        rf"\b(?:in |on )?at least (?:once|1(?: (?:{_ATT}|success))?)\b(?: (?:in|of|"
        rf"out of|within|over){_OF} (?P<k>\d+)(?: (?:{_ATT}))?)?|\bever\b|\beventually\b|"
        rf"\bany(?: 1)?{_OF}(?: (?P<k2>\d+))? (?:{_ATT})\b",
        "@",
    ),
    (r"\b(?:some|part) of the times?\b", "~n"),
    (r"\b(?:defeat|elud|stump|resist|baffl)\w*|\bunsolved\b|\bunresolved\b", "<0"),
    (r"\bbest[ -]of[ -](?P<k>\d+)\b", "@"),
    (
        r"\b(?:given|with|within|after|(?<!\d )in|using|allow\w*|afford|needs?|requires?|has|"
        rf"have|gets?|got|are|is|up to|budget of|let it (?:try|run)|try|even|takes?|retr\w+){_OF}"
        r"(?: up to| allowed| given| as many as)* (?P<k>\d+) (?!(?:best|worst|first|last|later|"
        r"other|remaining) )(?:independent |\w+ )?(?!seed|"
        rf"repetition|repeat|rollout|episode)(?:{_ATT})\b(?! (?:on |at )?{_EACH}\b)"
        r"(?!,? (?:of|in total|altogether|for each))",
        "<",
    ),
    (r"\b(?:with|given|after) (?:only |just )?(?P<k>\d+)(?=\s*(?:[,;:)(]|\.(?!\d)|and\b|$))", "<"),
    (
        rf"\bin (?:more than |>=)(?:half|50(?:\.0)?%){_OF} (?:{_ATT})\b|(?:more than |>=)(?:half|"
        rf"50(?:\.0)?%){_OF} (?:{_ATT}) (?=(?:succeed|pass|work)\w* (?:on|in|for|at)\b)|"
        rf"\bmajority of{_OF} (?:{_ATT})\b|\bmore often than not\b",
        "maj",
    ),
    (r"\ball-(?P<k>\d+)\b", "^"),
    (
        rf"\b(?:best|highest|top|maximum|luckiest)(?: single| individual)? (?:{_ATT})\b|"
        r"\b(?:its|the) best(?=,? (?:was |is |only |just |about )?~?\d)",
        ":best",
    ),
    (
        rf"\b(?:worst|lowest|minimum|weakest|unluckiest)(?: single| individual)? (?:{_ATT})\b|"
        r"\b(?:its|the) worst(?=,? (?:was |is |only |just |about )?~?\d)",
        ":worst",
    ),
    (rf"\bmedian(?: single| individual)? (?:{_ATT})\b", ":median"),
    (r"\b(?:standard deviation|SD|st\.? ?dev\w*|σ)\b", ":deviation"),
    (
        rf"\b(?:success|pass|resolution|resolve|solve|completion|win|hit)[ -](?:rates?|share|"
        rf"probability)\b|\baccurac\w+|\bscor(?:es?|ed|ing)\b|\bon average\b|\baverag\w+|\bmean\b|"
        rf"\b(?:a |1 |one |the )?single[ -](?:{_ATT})\b|\b(?:per|1|each|one) (?:{_ATT})\b|\b(?:on "
        rf"|at )?(?:the |its )?first (?:{_ATT}|go)\b|\b(?:error|failure|fail)[ -]rates?\b|\bof "
        rf"(?:its |the |their |all )?(?:{_ATT})\b|\b1-?shot\b",
        "1",
    ),
)
_UNITS = (  # a number, by what stands around it
    ("points", rf"(?P<n>{_N})[ -]?points?\b|(?<=\+)(?P<plus>{_N})(?![\w%.]|\.\d)"),
    (
        "all",
        rf"\b(?P<w>(?:solv|pass|complet|resol|crack|finish|handl|clear|fail|miss)\w* (?:on "
        rf")?(?:all|every|each)(?: of)?(?: the)?(?: single)? (?:{_TASK}))\b",
    ),
    (
        "x",
        r"(?:(?P<more>more than|over|at least) |(?P<near>nearly|almost|about|roughly|"
        rf"close to) )?(?P<n>{_N})\s?(?:x\b|×|times(?= (?:as|more|better|higher|likel|"
        r"that|the|its|⟦))|-?\s?fold\b)|(?:(?P<more2>more than|over) |(?P<near2>nearly|"
        r"almost|about|roughly) )?\b(?P<w>twice|doubl\w+|tripl\w+|quadrupl\w+|halv\w+|"
        r"in half|by half|half as (?:much|many|likely|often))\b",
    ),
    (
        "of",
        r"(?<!on )(?<!across )(?<!over )(?<!of )(?<!for )(?<!at )(?<!with )\b(?:all|"
        rf"each of)(?: of)?(?: the| its| our)* (?P<n>(?P<m>\d+)) (?:[\w-]+ )?(?P<noun>{_TASK})"
        r"(?! (?:were|was|are) (?:attempted|run|evaluated|used|tried|included))",
    ),
    (
        "of",
        rf"(?P<n>\d+)(?: (?:successful |failed |passing )?(?:{_TASK}|{_ATT}|times))? ?(?:/|"
        rf"\b(?:out )?of\b|\bin\b)(?: every)?{_OF}(?: all)?(?:\s*⟦\w⟧\s*)?(?: (?:possible|"
        rf"total))? ?(?P<m>\d+)\b(?!\.\d|%)(?: (?:\w+ ){{0,2}}?(?P<noun>{_TASK}|{_ATT}))?",
    ),
    ("%", rf"(?P<n>{_N})%"),
    ("tasks", rf"(?P<n>\d+) (?!more\b|fewer\b)(?:[a-z][\w-]* ){{0,2}}?(?:{_TASK})\b"),
    (
        "attempts",
        rf"(?P<n>\d+) (?!more\b|fewer\b|times as\b)(?:[a-z][\w-]* ){{0,1}}?(?:{_ATT}|"
        r"trajector\w+)\b",
    ),
    (
        "results",
        r"(?:(?<=succeeded )|(?<=succeeds )|(?<=failed )|(?<=fails )|(?<=passed ))(?P<times>\d+) "
        r"times\b|(?P<n>\d+) (?!more\b|fewer\b)(?:failures|successes|errors|failed|successful|"
        r"passed|correct)\b",
    ),
    ("share", r"(?P<n>0?\.\d+|1\.0+|0\.0+)(?!\w|\.\d)"),
    ("", r"(?P<n>\d+(?:\.\d+)?)(?![\w⟧])"),
)
_FACTORS = {"twi": 2.0, "dou": 2.0, "tri": 3.0, "qua": 4.0, "hal": 0.5, "in ": 0.5, "by ": 0.5}
_WEIGHTS = (
    (r"\w+", 1), (r",", 2), (r";", 6), (r"[()]", 1), (r"\band\b", 1), (r"[.!?]\s", 8),
    (r"\b(?:while|whereas|but|yet|although|though|however)\b|—| – ", 4), (r"\n", 4),
)  # fmt: skip
_CONFIG = re.compile(
    rf"(?:\b(?P<t>\d+) (?:[\w-]+ )?(?:{_TASK})(?: ?[x×,] ?| with | and | at )(?P<a>\d+) (?:[\w-]+ "
    rf")?(?:{_ATT})\b)|\b(?P<a2>\d+) (?:[\w-]+ )?(?:{_ATT})(?: were made)?,? (?:(?:at|on|of|for|"
    rf"in|with) )?{_EACH}\b|\b(?:run|ran|repeated|sampled|attempted|attempts|evaluated|tested|"
    rf"tried)\b[^.;,%]{{0,40}}?\b(?P<a3>\d+) times\b(?! out)|\bn ?= ?(?P<n>\d+)\b|\b(?:over|"
    rf"across|of|from) (?P<a4>\d+) (?:independent |separate )?(?:runs|seeds|trials|repetitions|"
    rf"repeats)\b(?: of)?",
    re.IGNORECASE,
)
_KS = re.compile(r"\bk ?= ?(?=\d)((?:\d+(?:, and |, | and | or |,)?)+)")
_DENIED = re.compile(r"\b(?:not|no longer|hardly)(?:\s+\w+){0,2}\s*$", re.IGNORECASE)
_BETWEEN = re.compile(
    r"\s*%?[)\]]?\s*(?:,|/|→|->|–|-|&|\band\b|\bvs\b|\bto\b|\bor\b|\bagainst\b|\bthrough\b|"
    r"\b(?:up|down)? ?from\b|\bthen\b|\s)*[(\[]?\s*"
)


@dataclass(slots=True)
class Number:
    """A number of the sentence: its place, its kind and its value."""

    text: str
    start: int
    end: int
    unit: str
    value: float
    step: float
    relation: str = "="
    total: int = 0
    noun: str = ""
    ends: tuple[float, float] | None = None
    error: float | None = None
    spread: str = ""
    is_denied: bool = False
    share: float | None = None
    """The share of passes that it states, where it was found right."""
    is_of_failures: bool = False
    owner: int | None = None
    """The only run that it is of, where it was found right."""


@dataclass(frozen=True, slots=True)
class Cue:
    """Words that say what a number counts: the metric, and whether failures are counted."""

    start: int
    end: int
    metric: str
    failing: bool | None = None
    weight: float = 0.0


class MarkedSentence:
    """A sentence with its numbers, cues and names found, and how far apart they stand."""

    def __init__(self, sentence: str, names: Sequence[Sequence[str]]) -> None:
        text = re.sub(r"^\s*(?:\d+[.)]|#+|[-*])\s+", "", sentence)
        text = re.sub(r"\b(only|just|exactly) one\b(?! of)", r"\1 1", text)
        text = re.sub(r"\b(?:the|these|those) two (?!\w*(?:tasks|problems))", "both ", text)
        text = re.sub(
            rf"\b(?:on|in) none\b(?! of (?:the |its |all )*(?:\d+ )?{_TASK})"
            rf"(?: of (?:them\b|the {_ATT}|its {_ATT}))?",
            " never ",
            text,
        )
        text = re.sub(
            r"\b(?:there (?:is|are|was|were) )?(?:not a single|no|not 1) (task|problem)"
            r"s? (?:on|in|for) which\b",
            r"on 0 \1s ", text, flags=re.IGNORECASE,
        )  # fmt: skip
        text = re.sub(rf"\ball(?: of)?(?: the)? k (?:{_ATT})", "pass^k", text)
        text = re.sub(rf"\b(?:at least (?:one|1) of|any of)(?: the)? k (?:{_ATT})", "pass@k", text)
        text = re.sub(
            r"\bwith one\b(?! of)(?! (?:\w+ )?(?:attempt|try|run|trial))", "with 1 attempt", text
        )
        text = re.sub(
            r"\b(all|both|each|every|none)((?: of)?(?: the)?(?: \w+)?) (?-i:[A-Z])[\w.-]+ "
            r"(agents?|models?|systems?|versions?|releases?)\b",
            r"\1\2 \3",
            text,
            flags=re.IGNORECASE,
        )
        text = plain_number(Reader(names).mark_names(text))
        text = re.sub(
            rf"\b(?:(worst|weakest|lowest) of(?: the| our| its| all| these)*|(best|highest) of"
            rf"(?: the| our| its| all| these)+)(?: \d+)? {_ATT}\b",
            lambda m: f"{m[1] or m[2]} run",
            text,
            flags=re.IGNORECASE,
        )
        self.text = re.sub(r"⟦r([\d+*?]+)⟧", _letters, text)
        self._left = self.text
        self.runs = [(m[1], m.start(), m.end()) for m in re.finditer(r"⟦([^⟧]*)⟧", self.text)]
        self.numbers: list[Number] = []
        self.cues: list[Cue] = []
        self._bounds: list[tuple[int, tuple[float, float] | None, tuple[float, str], bool]] = []
        self._take(P_VALUE, lambda _: None)
        self._take(INTERVALS, self._interval)
        self._take(ERRORS, self._error)
        for pattern in DROPPED[1:]:
            self._take(re.compile(pattern), lambda _: None)
        self._take(re.compile(DROPPED[0]), lambda _: None)
        self._metrics()
        self._take(_CONFIG, self._config)
        for pattern, metric in _CUES:
            self._take(re.compile(pattern, re.IGNORECASE), self._cue(metric))
        self.cues = [cue for cue in self.cues if not self._is_of_a_run(cue)]
        for unit, pattern in _UNITS:
            self._take(
                re.compile(
                    rf"(?P<op>>=|<=|~|[<>]|(?:fewer|less) than|more than|at least|at "
                    rf"most)?\s?(?<![\w.@^⟦$#-])(?:[-+](?=\d|\.\d))?(?:{pattern})",
                    re.I,
                ),
                self._number(unit),
            )
        self.numbers.sort(key=lambda one: one.start)
        for place, ends, error, is_lift in self._bounds:
            units = ("points",) if is_lift else ("%", "share", "", "points")
            before = [one for one in self.numbers if one.start < place and one.unit in units]
            if before:
                before[-1].ends, (before[-1].error, before[-1].spread) = ends, error
        for one in self.numbers:
            one.is_denied = bool(_DENIED.search(self.text[: one.start]))
        self._sums = self._distances()

    def _is_of_a_run(self, cue: Cue) -> bool:
        """Whether it says how the run before it scored: the worst run scored 57%."""
        before = [one.end for one in self.cues if ":" in one.metric and one.end <= cue.start]
        gap = self.text[max(before) : cue.start] if before else ","
        return cue.metric == "pass^1" and not re.search(r"[\d,;(]", gap)

    def take_budgets(self, below: int) -> None:
        """Take "with 2 attempts per task" as a cue, where more attempts were made."""
        for one in [one for one in self.numbers if one.unit == "budget"]:
            one.unit = "size of attempts"
            if one.value < below:
                self.cues.append(Cue(one.start, one.end, f"tasks<{one.text}"))
                self.numbers.remove(one)

    def _take(self, pattern: re.Pattern[str], use: Callable[[re.Match[str]], object]) -> None:
        """Use every match and blank it out: nothing is read twice."""
        for match in list(pattern.finditer(self._left)):
            if match[0].strip() and use(match) is not False:
                blank = re.sub(
                    r"⟦[^⟧]*⟧|\S", lambda one: one[0] if len(one[0]) > 1 else "\0", match[0]
                )
                self._left = self._left[: match.start()] + blank + self._left[match.end() :]

    def _interval(self, match: re.Match[str]) -> bool | None:
        groups = match.groups()
        low, low_unit, high, high_unit, _ = next(
            groups[at : at + 5] for at in range(0, 20, 5) if groups[at] is not None
        )
        if re.match(r"\(\s*\d+\s?,", match[0]) and not low_unit + high_unit:
            return False
        if match[0].startswith("between"):
            return False
        words = self.text[: match.start()] + re.split(r"[-+]?\d", match[0])[0]
        is_lift = OF_A_LIFT.search(re.sub(rf"{_N}% ?", "", words)) is not None
        self._bounds.append((match.start() + 1, (float(low), float(high)), (0.0, ""), is_lift))
        return None

    def _error(self, match: re.Match[str]) -> None:
        half = match["half"] or match["error"]
        self._bounds.append((match.start() + 1, None, (float(half), spread_of(match)), False))

    def _metrics(self) -> None:
        family = next((m for m in METRIC.finditer(self._left) if not (m[3] or "k").isdigit()), None)
        if family is not None:
            word = f"{family[1].lower()}{family[2]}"
            self._take(_KS, partial(self._listed_ks, word))
        self._take(METRIC, self._metric)

    def _listed_ks(self, family: str, match: re.Match[str]) -> None:
        """A list as in k = 1, 5 and 10: a metric each."""
        for k in re.finditer(r"\d+", match[1]):
            start = match.start(1) + k.start()
            self.cues.append(Cue(start, start + len(k[0]), f"{family}{k[0]}", weight=-1))

    def _metric(self, match: re.Match[str]) -> None:
        if match[3] and match[3].isdigit():
            word = f"{match[1].lower()}{match[2]}{match[3]}"
            weight = 7 if self._is_denied(match) else -1
            self.cues.append(Cue(match.start(), match.end(), word, weight=weight))

    def _is_denied(self, match: re.Match[str]) -> bool:
        """Whether it is what the number is not of: instead of one."""
        return bool(re.search(r"\b(?:instead of|rather than)\s*$", self.text[: match.start()]))

    def _config(self, match: re.Match[str]) -> None:
        for name, count in match.groupdict().items():
            if count:
                unit = "size of tasks" if name == "t" else "size of attempts"
                unit = {"n": "size", "a4": "attempts"}.get(name, unit)
                before = self.text[: match.start()]
                if name == "a2" and re.search(r"\b(?:with|given|allow\w*)\s*$", before, re.I):
                    unit = "budget"
                start, end = match.span(name)
                self.numbers.append(Number(count, start, end, unit, float(count), 1.0))

    def _cue(self, metric: str) -> Callable[[re.Match[str]], bool | None]:
        def use(match: re.Match[str]) -> bool | None:
            k = next(filter(None, match.groupdict().values()), "n")
            failing = None
            if metric == "<0":
                word, failing = f"tasks<{k}", True
            elif metric == "maj":
                word = "tasks:majority"
            elif metric == "~n":
                word = "tasks:some"
            elif metric[0] == ":":
                word = f"tasks{metric}{k if metric == ':trial' else ''}"
            elif metric == "1":
                word = "pass^1"
            elif metric == "^n":
                word, failing = "tasks^n", False
            else:
                word = f"tasks{metric}{k}"
            weight = float(metric == "1") + 8 * self._is_denied(match)
            self.cues.append(Cue(*match.span(), word, failing, weight))
            return None

        return use

    def _number(self, unit: str) -> Callable[[re.Match[str]], bool | None]:
        def use(match: re.Match[str]) -> bool | None:
            found = match.groupdict()
            text = found.get("n") or found.get("plus") or found.get("times") or ""
            word = (found.get("w") or "")[:3].lower()
            value = float(text) if text else 100.0 if unit == "all" else _FACTORS[word]
            step = 10.0 ** -len(text.partition(".")[2]) if text else 0.05 * value
            total = int(found.get("m") or 0)
            if unit == "of" and not 0 <= value <= total:
                return False
            relation = BOUND_WORDS.get((match["op"] or "=").lower(), match["op"] or "=")
            if found.get("more") or found.get("more2"):
                relation = ">="
            elif found.get("near") or found.get("near2"):
                relation = "~"
            self.numbers.append(
                Number(
                    match[0].strip(), match.start(), match.end(), "%" if unit == "all" else unit,
                    value, step, relation, total, (found.get("noun") or "").lower(),
                )
            )  # fmt: skip
            return None

        return use

    def _distances(self) -> list[float]:
        weight = [0.0] * (len(self.text) + 1)
        for pattern, cost in _WEIGHTS:
            for match in re.finditer(pattern, self.text):
                weight[match.start()] += cost
        for one in self.numbers:
            weight[one.start] += 2
        for cue in self.cues:
            for at in range(cue.start + 1, cue.end):
                weight[at] = 0.0
        return list(itertools.accumulate(weight, initial=0.0))

    def distance(self, start: int, end: int) -> float:
        return self._sums[max(end, start)] - self._sums[start]

    @cached_property
    def groups(self) -> list[list[Number]]:
        """Numbers that follow each other with nothing but signs and conjunctions between them."""
        groups: list[list[Number]] = []
        for one in self.numbers:
            gap = self.text[groups[-1][-1].end : one.start] if groups else ""
            if groups and _BETWEEN.fullmatch(gap) and kind_of(groups[-1][-1]) == kind_of(one):
                groups[-1].append(one)
            else:
                groups.append([one])
        return groups

    def group_of(self, number: Number) -> list[Number]:
        return next(group for group in self.groups if any(number is one for one in group))

    def name_lists(self) -> list[list[tuple[str, int, int]]]:
        lists: list[list[tuple[str, int, int]]] = []
        for run in self.runs:
            gap = self.text[lists[-1][-1][2] : run[1]] if lists else ""
            if lists and _BETWEEN.fullmatch(gap):
                lists[-1].append(run)
            else:
                lists.append([run])
        return lists


def _letters(match: re.Match[str]) -> str:
    """A run as a letter, so that a token has no digits; a run beyond 26 is as good as unknown."""
    runs = [part if part in "*?" else int(part) for part in match[1].split("+")]
    if any(isinstance(run, int) and run > 25 for run in runs):
        return "⟦?⟧"
    return f"⟦{'+'.join(run if isinstance(run, str) else chr(ord('a') + run) for run in runs)}⟧"


def kind_of(one: Number) -> str:
    return "share" if one.unit in ("%", "share", "", "of") else one.unit


HOW_MANY = re.compile(
    rf"{BOUND}(?<![\w.⟦+])(?:(?P<i>\d) (?:in(?: every)?|(?:out )?of every) (?P<h>\d\d?)|"
    r"(?P<n>\d+(?:\.\d+)?)(?P<unit>\s?%)?)"
    rf"(?: (?:out )?of(?: the| its| our| all)* (?P<m>\d+))?(?:(?: of)?"
    rf"(?: the| its| our| all| these)*(?: ⟦r\d+⟧)? (?P<noun>{_TASK}|{_ATT})\b)?(?![\w⟧%]|\.\d)",
    re.IGNORECASE,
)


def plain_count(number: re.Match[str]) -> str:
    """A count of ``HOW_MANY`` in plain words."""
    parts = (number["i"] and f"{number['i']} in {number['h']}", number["n"], number["unit"])
    total = number["m"] and f" of {number['m']}"
    return "".join(filter(None, (*parts, total, number["noun"] and f" {number['noun']}")))
