"""A second reading of a sentence: every number against the cues and the names around it.

The grammar reads a sentence it knows exactly and leaves others open, or takes them for something
else. This reading is coarse and knows no order of words: a number goes to the metric, the run and
the side (passes or failures) that stand nearest. Where its nearest reading is what the runs show,
the number is right; where none of the readings near it is, it is wrong.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from passhat.reporting.review.agreement import Support, holds
from passhat.reporting.review.grammar import DROPPED, P_VALUE, Reader
from passhat.reporting.review.rewrites import ERRORS, INTERVALS, plain_number
from passhat.reporting.review.statements import (
    ATTEMPTS,
    BENCHMARK,
    EQUAL,
    GOAL,
    METRIC,
    NUMBER,
    OTHER,
    POLARITY,
    SUBSET,
    TASKS,
    Difference,
    Share,
    Size,
    Statement,
    unknown_words,
)

__all__ = ["Found", "SecondReading"]

_ATT, _TASK, _N = ATTEMPTS, TASKS, NUMBER
_OF = r"(?: of)?(?: the| its| their| these| our| those)*"
_EACH = rf"(?:each|every|all of the \d+ (?:{_TASK})|per (?:{_TASK})|apiece|for each|at each|on each|for every|at every)"
# Words that say what a number counts: a phrase and the metric it means; K is the number in it.
_CUES: tuple[tuple[str, str], ...] = (
    (
        rf"\b(?:in |on |at |with )?(?:some|several|a few|part|only some){_OF} (?:{_ATT})?(?:,? but not (?:in |on |with )?(?:all|every|each|others?)\b(?:{_OF}(?: them| {_ATT})?)?)",
        "~n",
    ),
    (
        rf"\b(?:sometimes|occasionally|intermittent\w*|flaky|flakily|inconsistent\w*|mixed results)\b",
        "~n",
    ),
    (rf"\bnever (?:once |even |ever )?(?:fail|miss|break|got? it wrong|gets it wrong)\w*", "^n"),
    (
        rf"\b(?:in|on|with|for|after|of) (?:none|no (?:single )?(?:{_ATT})|not (?:a single |1 )(?:{_ATT})?)\b(?:{_OF}(?: (?P<k>\d+))? (?:{_ATT}|them))?|\bnot once\b|\bnever\b|\bnot at all\b|\b(?:0|no) times\b|\bcame up empty every time\b|\b0 of{_OF} (?P<k2>\d+) (?:{_ATT})\b",
        "<0",
    ),
    (
        rf"\b(?P<k>\d+)(?: times| (?:{_ATT}))? ?(?:out of|of|/) ?(?P=k)(?! (?:{_TASK}))(?: (?:{_ATT}))?\b",
        "^",
    ),
    (
        rf"\b(?:in |on |at |with |across |over |of )?(?:all|(?:each|every)(?! \d))(?: single)?(?: 1)?{_OF}(?: (?P<k>\d+))?(?: \w+)? (?:{_ATT})\b(?! (?:at|of|on|per) (?:each|every))|\b(?:every|each)(?: single)? time\b|\bwithout fail\b|\balways\b|\bconsistently\b|\breliably\b|\bperfectly consistent\b|\bboth (?:times|(?:{_ATT}))\b|\ball (?P<k2>\d+)(?= (?:succeed|pass|must)|[,.;)]|$)",
        "^",
    ),
    (
        rf"\b(?P<k>\d+) (?:{_ATT} )?in a row\b|\b(?P<k2>\d+) (?:consecutive|straight|successive)\b",
        "^",
    ),
    (
        rf"\b(?:in |on )?at least (?:once|1(?: (?:{_ATT}|success))?)\b(?: (?:in|of|out of|within|over){_OF} (?P<k>\d+)(?: (?:{_ATT}))?)?|\bever\b|\beventually\b|\bany(?: 1)?{_OF}(?: (?P<k2>\d+))? (?:{_ATT})\b",
        "@",
    ),
    (rf"\bbest[ -]of[ -](?P<k>\d+)\b", "@"),
    (
        rf"\b(?:given|with|within|after|in|using|allow\w*|has|have|gets?|got|are|is|up to|budget of|let it (?:try|run)|try|even|takes?|retr\w+){_OF}(?: up to| allowed| given| as many as)* (?P<k>\d+) (?:independent |\w+ )?(?!seed|repetition|repeat|rollout|episode)(?:{_ATT})\b(?! (?:on |at )?{_EACH}\b)(?!,? (?:of|in total|altogether|for each))",
        "<",
    ),
    (r"\b(?:with|given|after) (?P<k>\d+)(?=\s*(?:[,;:)(]|\.(?!\d)|and\b|$))", "<"),
    (
        rf"\bin more than (?:half|50%){_OF} (?:{_ATT})\b|\bmajority of{_OF} (?:{_ATT})\b|\bmore often than not\b",
        "maj",
    ),
    (rf"\b(?:best|highest|top|maximum|luckiest)(?: single| individual)? (?:{_ATT})\b", ":best"),
    (
        rf"\b(?:worst|lowest|minimum|weakest|unluckiest)(?: single| individual)? (?:{_ATT})\b",
        ":worst",
    ),
    (rf"\bmedian(?: single| individual)? (?:{_ATT})\b", ":median"),
    (r"\b(?:standard deviation|SD|st\.? ?dev\w*|σ)\b", ":deviation"),
    (
        rf"\b(?:success|pass|resolution|resolve|solve|completion|win|hit)[ -](?:rates?|share|probability)\b|\baccurac\w+|\bscor(?:es?|ed|ing)\b|\bon average\b|\baverag\w+|\bmean\b|\b(?:a |1 |one |the )?single (?:{_ATT})\b|\b(?:per|1|each|one) (?:{_ATT})\b|\b(?:on |at )?(?:the |its )?first (?:{_ATT}|go)\b|\b(?:error|failure|fail)[ -]rates?\b|\bof (?:its |the |their |all )?(?:{_ATT})\b|\b1-?shot\b",
        "1",
    ),
)
_CATCH = re.compile(
    r"\b(?:catch\w* up|caught up|overt\w+|clos\w+ the gap|reach\w* the level)", re.I
)
_FAIL = (
    r"\b(?:fail\w*|errors?|wrong|unsolved|incorrect\w*|miss(?:es|ed)|unresolved|empty|resist\w*|"
    r"defeat\w*|elud\w*|stump\w*|baffl\w*|out of(?: the)?\s*(?:⟦[^⟧]*⟧)?\s*reach|unsuccessful\w*|beyond|never|"
    rf"not (?:be )?(?:solve|pass|complete|resolve|succeed|right)\w*|not at all|none|"
    r"without success|loses?|lost|impossible|crash\w*)\b"
)
_PASS = (
    r"\b(?:pass(?:es|ed|ing)?\b(?![@^])|solv\w+|succe(?!ssive)\w+|accura\w+|resol\w+|complet\w+|"
    r"correct\w*|right|scor\w+|reliab\w+|crack\w*|finish\w+|consisten\w+|clears?|cleared|handl\w+|"
    r"answer\w*|always|manages?)\b"
)
_UNITS = (  # a number, by what stands around it
    ("points", rf"(?P<n>{_N})[ -]?points?\b|(?<=\+)(?P<plus>{_N})(?![\w%.]|\.\d)"),
    (
        "all",
        rf"\b(?P<w>(?:solv|pass|complet|resol|crack|finish|handl|clear|fail|miss)\w* (?:on )?(?:all|every|each)(?: of)?(?: the)?(?: single)? (?:{_TASK}))\b",
    ),
    (
        "x",
        rf"(?:(?P<more>more than|over|at least) |(?P<near>nearly|almost|about|roughly|close to) )?(?P<n>{_N})\s?(?:x\b|×|times(?= (?:as|more|better|higher|likel|that|the|its|⟦))|-?\s?fold\b)|(?:(?P<more2>more than|over) |(?P<near2>nearly|almost|about|roughly) )?\b(?P<w>twice|doubl\w+|tripl\w+|quadrupl\w+|halv\w+|in half|by half)\b",
    ),
    (
        "of",
        rf"(?<!on )(?<!across )(?<!over )(?<!of )(?<!for )(?<!at )(?<!with )\b(?:all|each of)(?: of)?(?: the| its| our)* (?P<n>(?P<m>\d+)) (?:[\w-]+ )?(?P<noun>{_TASK})(?! (?:were|was|are) (?:attempted|run|evaluated|used|tried|included))",
    ),
    (
        "of",
        rf"(?P<n>\d+)(?: (?:{_TASK}|{_ATT}|times))? ?(?:/|\b(?:out )?of\b|\bin\b)(?: every)?{_OF}(?: all)?(?: ⟦r\d+⟧)?(?: (?:possible|total))? ?(?P<m>\d+)\b(?!\.\d|%)(?: (?:\w+ ){{0,2}}?(?P<noun>{_TASK}|{_ATT}))?",
    ),
    ("%", rf"(?P<n>{_N})%"),
    ("tasks", rf"(?P<n>\d+) (?!more\b|fewer\b)(?:[a-z][\w-]* ){{0,2}}?(?:{_TASK})\b"),
    (
        "attempts",
        rf"(?P<n>\d+) (?!more\b|fewer\b|times as\b)(?:[a-z][\w-]* ){{0,1}}?(?:{_ATT}|trajector\w+)\b",
    ),
    (
        "results",
        r"(?P<n>\d+) (?!more\b|fewer\b)(?:failures|successes|errors|failed|successful|passed|correct)\b",
    ),
    ("share", r"(?P<n>0?\.\d+|1\.0+|0\.0+)(?![\w.])"),
    ("", rf"(?P<n>\d+(?:\.\d+)?)(?![\w⟧])"),
)
_BOUNDS = {
    "fewer than": "<=",
    "less than": "<=",
    "at most": "<=",
    "more than": ">=",
    "at least": ">=",
}
_FACTORS = {
    "sol": 100.0,
    "pas": 100.0,
    "com": 100.0,
    "res": 100.0,
    "cra": 100.0,
    "fin": 100.0,
    "han": 100.0,
    "cle": 100.0,
    "fai": 100.0,
    "mis": 100.0,
    "twi": 2.0,
    "dou": 2.0,
    "tri": 3.0,
    "qua": 4.0,
    "hal": 0.5,
    "in ": 0.5,
    "by ": 0.5,
}
_WEIGHTS = (
    (r"\w+", 1), (r",", 2), (r";", 6), (r"[()]", 1), (r"\band\b", 1), (r"[.!?]\s", 8),
    (r"\b(?:while|whereas|but|yet|although|though|however)\b|—| – ", 4), (r"\n", 4),
)  # fmt: skip
_CONFIG = re.compile(
    rf"(?:\b(?P<t>\d+) (?:[\w-]+ )?(?:{_TASK})(?: ?[x×,] ?| with | and | at )(?P<a>\d+) (?:[\w-]+ )?(?:{_ATT})\b)"
    rf"|\b(?P<a2>\d+) (?:[\w-]+ )?(?:{_ATT})(?: were made)?,? (?:(?:at|on|of|for|in|with) )?{_EACH}\b"
    rf"|\b(?:run|ran|repeated|sampled|attempted|attempts|evaluated|tested|tried)\b[^.;,%]{{0,40}}?\b(?P<a3>\d+) times\b(?! out)"
    rf"|\bn ?= ?(?P<n>\d+)\b|\b(?:over|across|of|from) (?P<a4>\d+) (?:independent |separate )?(?:runs|seeds|trials|repetitions|repeats)\b(?: of)?",
    re.IGNORECASE,
)
_ASIDE = re.compile(rf"{OTHER.pattern}|\b(?:temperatures?|{GOAL.pattern[5:]}", re.IGNORECASE)
_DENIED = re.compile(r"\b(?:not|no longer|hardly)(?: \w+){0,2}\s*$", re.IGNORECASE)
_REPEATS = r"\b(?:seed|repetition|repeat|rollout|episode)"
_SMALL, _WIDE = 1.5, 4.0


@dataclass(slots=True)
class _Number:
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
    is_denied: bool = False
    share: float | None = None
    """The share it was found to be right as; what is computed from it is checked against it."""


@dataclass(frozen=True, slots=True)
class _Cue:
    start: int
    end: int
    metric: str
    failing: bool | None = None
    weight: float = 0.0


@dataclass(frozen=True, slots=True)
class Found:
    """A number of a sentence with the answer to its nearest reading."""

    text: str
    statement: str
    support: Support
    detail: str
    is_lift: bool = False
    is_read: bool = True
    is_size: bool = False


class _Sentence:
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
            r"\b(?:there (?:is|are|was|were) )?(?:not a single|no|not 1) (task|problem)s? (?:on|in|for) which\b",
            r"on 0 \1s ", text, flags=re.IGNORECASE,
        )  # fmt: skip
        text = re.sub(rf"\ball(?: of)?(?: the)? k (?:{_ATT})", "pass^k", text)
        text = re.sub(rf"\b(?:at least (?:one|1) of|any of)(?: the)? k (?:{_ATT})", "pass@k", text)
        text = re.sub(
            r"\bwith one\b(?! of)(?! (?:\w+ )?(?:attempt|try|run|trial))", "with 1 attempt", text
        )
        text = re.sub(
            r"\b(all|both|each|every|none)((?: of)?(?: the)?(?: \w+)?) [A-Z][\w.-]+ "
            r"(agents?|models?|systems?|versions?|releases?)\b",
            r"\1\2 \3",
            text,
            flags=re.IGNORECASE,
        )
        text = plain_number(Reader(names).mark_names(text))
        self.text = re.sub(
            r"⟦r([\d+*?]+)⟧", lambda m: f"⟦{re.sub(r'[0-9]+', _letter, m[1])}⟧", text
        )
        self._left = self.text
        self.runs = [(m[1], m.start(), m.end()) for m in re.finditer(r"⟦([^⟧]*)⟧", self.text)]
        self.numbers: list[_Number] = []
        self.cues: list[_Cue] = []
        self._bounds: list[tuple[int, tuple[float, float] | None, float | None]] = []
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
        for unit, pattern in _UNITS:
            self._take(
                re.compile(
                    rf"(?P<op>>=|<=|~|[<>]|(?:fewer|less) than|more than|at least|at most)?\s?(?<![\w.@^⟦$#-])(?:[-+](?=\d|\.\d))?(?:{pattern})",
                    re.I,
                ),
                self._number(unit),
            )
        self.numbers.sort(key=lambda one: one.start)
        for place, ends, error in self._bounds:
            before = [one for one in self.numbers if one.start < place]
            if before and before[-1].unit in ("%", "share", "", "points"):
                before[-1].ends, before[-1].error = ends, error
        for one in self.numbers:
            one.is_denied = bool(_DENIED.search(self.text[: one.start]))
        self._sums = self._distances()

    def take_budgets(self, below: int) -> None:
        """Take "with 2 attempts per task" as a cue, where more attempts were made."""
        for one in [one for one in self.numbers if one.unit == "budget"]:
            one.unit = "size of attempts"
            if one.value < below:
                self.cues.append(_Cue(one.start, one.end, f"tasks<{one.text}"))
                self.numbers.remove(one)

    def _take(self, pattern: re.Pattern[str], use: Callable[[re.Match[str]], object]) -> None:
        """Use every match and blank it out: nothing is read twice."""
        for match in list(pattern.finditer(self._left)):
            if match[0].strip() and use(match) is not False:
                blank = re.sub(r"[^⟦⟧\s]", "\0", match[0])
                kept = "".join(
                    old if old in "⟦⟧" or "⟦" in match[0] and _in_token(match[0], at) else new
                    for at, (old, new) in enumerate(zip(match[0], blank, strict=True))
                )
                self._left = self._left[: match.start()] + kept + self._left[match.end() :]

    def _interval(self, match: re.Match[str]) -> bool | None:
        groups = match.groups()
        low, low_unit, high, high_unit, _ = next(
            groups[at : at + 5] for at in range(0, 20, 5) if groups[at] is not None
        )
        if re.match(r"\(\s*\d+\s?,", match[0]) and not low_unit + high_unit:
            return False
        if match[0].startswith("between"):
            return False
        self._bounds.append((match.start() + 1, (float(low), float(high)), None))
        return None

    def _error(self, match: re.Match[str]) -> None:
        half = match["half"] or match["error"]
        error = float(half) * (-1 if match["error"] or match["se"] else 1)
        self._bounds.append((match.start() + 1, None, error))

    def _metrics(self) -> None:
        ks = list(re.finditer(r"\bk ?= ?(?=\d)((?:\d+(?:, and |, | and | or |,)?)+)", self._left))
        family = next((m for m in METRIC.finditer(self._left) if not (m[3] or "k").isdigit()), None)
        for listed in ks if family else ():
            for k in re.finditer(r"\d+", listed[1]):
                start = listed.start(1) + k.start()
                word = f"{family[1].lower()}{family[2]}{k[0]}"  # type: ignore[index]
                self.cues.append(_Cue(start, start + len(k[0]), word, weight=-1))
        if ks and family:
            for listed in ks:
                self._blank(listed)
        self._take(METRIC, self._metric)

    def _blank(self, match: re.Match[str]) -> None:
        blank = re.sub(r"\S", "\0", match[0])
        self._left = self._left[: match.start()] + blank + self._left[match.end() :]

    def _metric(self, match: re.Match[str]) -> None:
        if match[3] and match[3].isdigit():
            word = f"{match[1].lower()}{match[2]}{match[3]}"
            weight = 7 if self._is_denied(match) else -1
            self.cues.append(_Cue(match.start(), match.end(), word, weight=weight))

    def _is_denied(self, match: re.Match[str]) -> bool:
        """Whether it is what the number is not of: instead of one."""
        return bool(re.search(r"\b(?:instead of|rather than)\s*$", self.text[: match.start()]))

    def _config(self, match: re.Match[str]) -> None:
        for name, count in match.groupdict().items():
            if count:
                unit = "size of tasks" if name == "t" else "size of attempts"
                unit = "size" if name == "n" else unit
                before = self.text[: match.start()]
                if name == "a2" and re.search(r"\b(?:with|given|allow\w*)\s*$", before, re.I):
                    unit = "budget"
                start, end = match.span(name)
                self.numbers.append(_Number(count, start, end, unit, float(count), 1.0))

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
                word = f"tasks{metric}"
            elif metric == "1":
                word = "pass^1"
            elif metric == "^n":
                word, failing = "tasks^n", False
            else:
                word = f"tasks{metric}{k}"
            weight = float(metric == "1") + 8 * self._is_denied(match)
            self.cues.append(_Cue(*match.span(), word, failing, weight))
            return None

        return use

    def _number(self, unit: str) -> Callable[[re.Match[str]], bool | None]:
        def use(match: re.Match[str]) -> bool | None:
            found = match.groupdict()
            text = found.get("n") or found.get("plus") or ""
            value = float(text) if text else _FACTORS[found["w"][:3].lower()]
            step = 10.0 ** -len(text.partition(".")[2]) if text else 0.05 * value
            total = int(found.get("m") or 0)
            if unit == "of" and not 0 <= value <= total:
                return False
            relation = _BOUNDS.get((match["op"] or "=").lower(), match["op"] or "=")
            if relation == "~" and text in ("33.3", "66.7", "50.0", "25.0", "75.0", "20.0"):
                step = 4.0  # a third, and the like
            if found.get("more") or found.get("more2"):
                relation = ">="
            elif found.get("near") or found.get("near2"):
                relation = "~"
            self.numbers.append(
                _Number(
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

    def groups(self) -> list[list[_Number]]:
        """Numbers that follow each other with nothing but signs and conjunctions between them."""
        groups: list[list[_Number]] = []
        for one in self.numbers:
            gap = self.text[groups[-1][-1].end : one.start] if groups else ""
            if groups and _BETWEEN.fullmatch(gap) and _kind(groups[-1][-1]) == _kind(one):
                groups[-1].append(one)
            else:
                groups.append([one])
        return groups

    def name_lists(self) -> list[list[tuple[str, int, int]]]:
        lists: list[list[tuple[str, int, int]]] = []
        for run in self.runs:
            gap = self.text[lists[-1][-1][2] : run[1]] if lists else ""
            if lists and _BETWEEN.fullmatch(gap):
                lists[-1].append(run)
            else:
                lists.append([run])
        return lists


_AHEAD_WORDS = r"(?:higher|better|ahead|wins?|worse|lower|behind|loses?|lost)\b"
_AHEAD = re.compile(
    r"\b(?:higher|better|ahead|wins?|worse|lower|behind|loses?|lost|tie[sd]?|equal\w*|the same|draws?)\b"
    r"(?:\s+(?!of\b)[\w⟦⟧-]+){0,4}?\s+(?:on|in)(?: (?:only|just|all|each of|the|of))*\s*$",
    re.IGNORECASE,
)
_BETWEEN = re.compile(
    r"\s*%?[)\]]?\s*(?:,|/|→|->|–|-|&|\band\b|\bvs\b|\bto\b|\bor\b|\bagainst\b|\bthrough\b|"
    r"\b(?:up|down)? ?from\b|\bthen\b|\s)*[(\[]?\s*"
)
_BESIDE = re.compile(
    r"(?:'s)?\s*(?:[:=(,–—→-]|\b(?:at|with|is|was|has|had|gets?|got|reach\w*|scor\w+|manag\w+|only|"
    r"just|even|about|attains?|achiev\w+|obtains?|hits?|to|solv\w+|pass\w*|a|an|the|of|agent|model|"
    r"mean|success|rate|stands?|sits?|gets|comes?|out|in|still|now|already|completes?|fails?)\b|\s)*"
)
_BEHIND = re.compile(
    r"\s*(?:%|\)|tasks\b|attempts\b|of the\b|ahead\b|\s)*(?:\b(?:for|in|by|with|from|of|on|under|using)\b|\()"
    r"\s*(?:the |our |its |agent |model |version |base |baseline )*"
)
_OWN = re.compile(r"(?:'s)?\s*(?:[:(=]|is\b|at\b|has\b|with\b|only\b|gets\b|,)?\s*\(?[~<>]?=?\d")
_OBJECT = re.compile(
    r"\b(?:than|over|vs|against|behind|ahead of|above|below|short of|from|since|between|as|"
    r"(?:swap|replac|improv)\w*(?: on)?|(?:beat|outperform|surpass|exceed|top|lead|trail|lag|edge|match|overt|outscor|dominat)\w*(?: up with| by)?)"
    r"\s+(?:that of |the |baseline |agent |model )*$",
    re.IGNORECASE,
)


def _letter(match: re.Match[str]) -> str:
    return chr(ord("a") + min(int(match[0]), 25))


def _in_token(text: str, at: int) -> bool:
    return text.rfind("⟦", 0, at + 1) > text.rfind("⟧", 0, at)


def _kind(one: _Number) -> str:
    return "share" if one.unit in ("%", "share", "", "of") else one.unit


@dataclass(slots=True)
class SecondReading:
    """Reads the sentences of a passage one after the other."""

    names: Sequence[Sequence[str]]
    check: Callable[[Statement], tuple[str, Support, str]]
    may_be: Callable[[Statement], bool]
    """Whether the numbers alone allow it to be right; quick."""
    task_counts: frozenset[int]
    attempt_counts: frozenset[int]
    """Attempts at a task."""
    totals: frozenset[int]
    """Attempts in all."""
    tasks: frozenset[str]
    pooled: tuple[int, int]
    """Attempts that pass, and all, of all runs together."""
    metrics: frozenset[str] = frozenset()
    """The metrics that the last sentence names."""
    cue_texts: tuple[str, ...] = ()
    computed: set[str] = field(default_factory=set)
    """Numbers that follow from others of the last sentence."""
    _last_run: str = ""
    _last_cue: _Cue | None = None
    owned: set[int] = field(default_factory=set)

    def read(self, sentence: str) -> list[Found]:
        """What the runs say of every number; empty where the sentence is about a part of them."""
        one = _Sentence(sentence, self.names)
        one.take_budgets(max(self.attempt_counts, default=0))
        found: list[Found] = []
        self.owned.clear()
        self.computed.clear()
        if self._is_readable(one):
            lifts = [self._is_lift(one, number) for number in one.numbers]
            for last in (False, True):
                for number, is_lift in zip(one.numbers, lifts, strict=True):
                    if is_lift is last and not self._is_aside(one, number):
                        found.append(self._answer(one, number))
        self.metrics = self._metrics_of(one)
        self.cue_texts = tuple(one.text[cue.start : cue.end] for cue in one.cues)
        if found and self._is_open_comparison(one):
            found.append(
                Found("", "the comparison", Support.NOT_CHECKABLE, "its sides have no numbers")
            )
        first = min((number.start for number in one.numbers), default=len(one.text))
        for code, start, _ in one.runs:
            if not self._last_run or (start < first and not _OBJECT.search(one.text[:start])):
                self._last_run = code
                break
        if one.cues:
            self._last_cue = one.cues[-1]
        return found

    def _is_readable(self, one: _Sentence) -> bool:
        """Whether it is about whole runs: no part of the tasks, no single task, no other run."""
        words = set(re.findall(r"[\w.:/-]*\w", one.text))
        return (
            re.search("[a-z]", one.text) is not None
            and not SUBSET.search(one.text)
            and not re.search(
                r"\b(?:any|median|worst|average|hardest|easiest) (?:single )?task\b", one.text
            )
            and "⟦?⟧" not in one.text
            and not words & self.tasks
        )

    def _is_open_comparison(self, one: _Sentence) -> bool:
        """Whether runs are compared of which some have no number that is right."""
        named = {ord(code) - 97 for code, *_ in one.runs if code.isalpha()}
        compares = POLARITY.search(one.text) or EQUAL.search(one.text) or _CATCH.search(one.text)
        return bool(compares) and len(named) > 1 and not named <= self.owned

    def _metrics_of(self, one: _Sentence) -> frozenset[str]:
        return frozenset(cue.metric for cue in one.cues)

    def _is_lift(self, one: _Sentence, number: _Number) -> bool:
        return number.unit in ("points", "x") or self._is_change(one, number)

    def _is_aside(self, one: _Sentence, number: _Number) -> bool:
        """Whether it is no result: a cost, a goal, or attempts below all made, the k of another."""
        before = re.split(r"[,;()%]", one.text[: number.start])[-1]
        after = re.split(r"[,;()]|⟦", one.text[number.end :])[0]
        if number.unit in ("%", "share", "") and _ASIDE.search(f"{before} {after}"):
            return True
        group = next(group for group in one.groups() if number in group)
        before = one.text[max(0, group[0].start - 24) : number.start]
        if re.search(_REPEATS, number.text):
            return False
        is_attempts = number.unit == "attempts" or re.search(rf"\d {_ATT} (?:to|and|or) $", before)
        return bool(is_attempts) and number.value < max(self.attempt_counts, default=0)

    def _answer(self, one: _Sentence, number: _Number) -> Found:
        """The answer to the nearest reading, unless another one near it is right."""
        if number.unit.startswith("size"):
            return self._size(number)
        computed = self._of_beside(one, number)
        if computed is not None:
            return computed
        if (
            re.match(rf"\s*on (?:the )?{BENCHMARK}", one.text[number.end :])
            and len(one.numbers) > 1
        ):
            reason = "it may be of another benchmark"
            return Found(number.text, number.text, Support.NOT_CHECKABLE, reason)
        strange = self._strange_words(one, number)
        if strange:
            return Found(
                number.text, number.text, Support.NOT_CHECKABLE, f"{strange!r} was not understood"
            )
        readings = sorted(self._readings(one, number), key=lambda pair: pair[0])
        if self._is_lift(one, number) and self._is_computed(one, number):
            self.computed.add(number.text)
        if not readings and number.text in self.computed:
            return Found(number.text, number.text, Support.SUPPORTED, "from the numbers beside it")
        if not readings:
            return Found(
                number.text,
                number.text,
                Support.NOT_CHECKABLE,
                "it was not understood",
                is_read=False,
            )
        best = readings[0][0]
        first: Found | None = None
        for penalty, statement in readings:
            if penalty > best + _WIDE:
                break
            if first is not None and not self.may_be(statement):
                continue
            name, support, detail = self.check(statement)
            lift = isinstance(statement, Difference)
            if support is Support.SUPPORTED:
                if penalty <= best + _SMALL:
                    if isinstance(statement, Share):
                        number.share = statement.low
                        self.owned.update(statement.owners)
                    elif isinstance(statement, Difference):
                        self.owned.update((statement.subject or 0, statement.other or 0))
                    return Found(number.text, name, support, detail, lift)
                reason = f"it may be {name}"
                return Found(number.text, number.text, Support.NOT_CHECKABLE, reason)
            several = isinstance(statement, Share) and len(statement.owners) > 1
            if several and (number.unit in ("tasks", "of", "") or len(self._metrics_of(one)) > 1):
                return Found(
                    number.text, number.text, Support.NOT_CHECKABLE, "it is of several runs"
                )
            first = first or Found(number.text, name, support, detail, lift)
        if number.text in self.computed:
            return Found(number.text, number.text, Support.SUPPORTED, "from the numbers beside it")
        assert first is not None
        return first

    def _of_beside(self, one: _Sentence, number: _Number) -> Found | None:
        """A percentage in brackets behind the counts that it is made of, and a count of all runs."""
        if number.unit == "of" and number.total == self.pooled[1] and len(self.names) > 1:
            is_right = number.value in (self.pooled[0], self.pooled[1] - self.pooled[0])
            support = Support.SUPPORTED if is_right else Support.CONTRADICTED
            number.share = number.value / number.total
            detail = f"{self.pooled[0]:,} of {self.pooled[1]:,} attempts pass"
            return Found(number.text, f"attempts of all = {number.text}", support, detail)
        place = one.numbers.index(number)
        before = one.numbers[place - 1] if place else None
        if number.unit != "%" or before is None or before.unit != "of" or not before.total:
            return None
        if not re.fullmatch(r"[^,;()\d]*[(=]\s*", one.text[before.end : number.start]):
            return None
        near = abs(100 * before.value / before.total - number.value) <= 0.5001 * number.step
        if not near:
            return None
        number.share = number.value / 100
        return Found(number.text, f"{number.text} = {before.text}", Support.SUPPORTED, "they agree")

    def _strange_words(self, one: _Sentence, number: _Number) -> str:
        """Unknown verbs between a run and its number: they may say what is counted."""
        before = [end for _, _, end in one.runs if end <= number.start]
        part = one.text[before[-1] : number.start] if before else ""
        part = re.split(r"[:,;(]", part)[-1]
        known = rf"{_FAIL}|{_PASS}|{POLARITY.pattern}|[⟦;.]"
        if any(cue.end > before[-1] and cue.start < number.start for cue in one.cues if before):
            return ""
        if not part or re.search(known, part, re.IGNORECASE):
            return ""
        return " ".join(word for word in unknown_words(part) if re.search(r"(?:ed|es|s)$", word))

    def _is_computed(self, one: _Sentence, number: _Number) -> bool:
        """Whether it is the difference or the ratio of two numbers of the sentence."""
        shares = [other.share for other in one.numbers if other.share is not None]
        stated, slack = number.value, 0.5001 * number.step
        for a, b in itertools.permutations(shares, 2):
            size = {"points": 100 * (a - b), "x": a / b if b else 0.0}.get(
                number.unit, 100 * (a / b - 1) if b else 0.0
            )
            more = slack if number.unit == "points" else slack + 0.1 * stated
            if holds(abs(size), stated, more, number.relation):
                return True
        return False

    def _size(self, number: _Number) -> Found:
        kind = number.unit.removeprefix("size of ")
        statement = Size(
            f"{number.text} {kind}", int(number.value), kind != "attempts", kind != "tasks",
            per_task=kind == "attempts" or int(number.value) == self.pooled[1],
        )  # fmt: skip
        return Found(number.text, *self.check(statement), is_size=True)

    def _readings(self, one: _Sentence, number: _Number) -> Iterator[tuple[float, Statement]]:
        count = int(number.value)
        if number.unit == "of" and number.noun and number.total > 10:
            is_task = re.fullmatch(_TASK, number.noun) is not None
            sizes = self.task_counts if is_task else self.totals | self.attempt_counts
            if number.total not in sizes and number.total not in (100, 1000):
                yield 0.0, Size(number.text, number.total, is_task, not is_task)
                return
        if number.unit == "tasks" and count not in self.task_counts:
            before = one.text[: number.start]
            is_all = re.search(r"\b(?:on|across|over|using|from)(?: (?:the|our|all))?\s*$", before)
            yield 0.0 if is_all and not one.cues else 11.0, Size(number.text, count, True, False)
        if number.unit == "tasks" and count in self.task_counts:
            yield 0.0, Size(number.text, count, True, False)
        if number.unit == "" and count in self.totals - self.task_counts:
            yield 4.0, Size(number.text, count, False, True)
        if number.unit == "attempts":
            yield 0.0, Size(number.text, count, False, True)
            return
        is_change = self._is_change(one, number)
        ahead = _AHEAD.search(one.text[: number.start]) or re.match(
            rf",?\s*(?=⟦\w⟧[^,;]*?\b({_AHEAD_WORDS}))", one.text[number.end :]
        )
        if ahead is None and re.match(
            r"\s*(?:tasks )?(?:were |are )?(?:ties|tied|draws)\b", one.text[number.end :]
        ):
            ahead = re.match(r"(ties)?", "ties")
        if ahead and number.step == 1 and number.unit in ("tasks", "of", ""):
            words = (ahead[0].strip() or ahead[1]).lower()
            yield from self._tasks_ahead(one, number, words, is_after=not ahead[0].strip())
            return
        if number.unit == "points" and any(cue.metric == "tasks:deviation" for cue in one.cues):
            share = Share(number.text, value := number.value / 100, value, number.step / 100)
            for price, owners in self._owners(one, number):
                yield price, replace(share, metric="tasks:deviation", owners=owners)
        if number.unit in ("points", "x") or is_change:
            yield from self._lifts(one, number)
            if number.unit in ("points", "x"):
                return
        shares = list(self._shares(number))
        for (cost, metric, failing), (price, owners) in itertools.product(
            self._meanings(one, number), self._owners(one, number)
        ):
            for more, share, metrics in shares:
                if metrics and metric not in metrics:
                    continue
                if metric in ("tasks:best", "tasks:worst") and share.relation in (">=", "<="):
                    turned = "<=" if metric == "tasks:best" else ">="
                    share = replace(share, relation=turned)
                yield (
                    cost + price + more + 3 * is_change,
                    replace(share, metric=metric, owners=owners, failing=failing),
                )

    def _shares(self, number: _Number) -> Iterator[tuple[float, Share, tuple[str, ...]]]:
        """The number as a share, with the metrics that it may be of."""
        value, step, relation = number.value, number.step, number.relation
        if number.is_denied and relation in (">=", "<="):
            relation = "<" if relation == ">=" else ">"
        if number.unit in ("%", ""):
            scale = 0.01
            ends = number.ends and (number.ends[0] * scale, number.ends[1] * scale)
            if number.unit == "%" or value <= 100:
                more = 0.0 if number.unit == "%" or number.step < 1 else 3.0
                yield more, Share(
                    number.text, value * scale, value * scale, step * scale, relation,
                    ends=ends, error=number.error and number.error * scale,
                ), ()  # fmt: skip
        if number.unit == "share":
            yield 0.0, Share(number.text, value, value, step, relation, ends=number.ends,
                             error=number.error), ()  # fmt: skip
        if number.unit in ("tasks", "") and number.step == 1:
            yield 0.0, Share(number.text, value, value, 1.0, relation, counted="task",
                             count=int(value)), ()  # fmt: skip
        if number.unit in ("results", "") and number.step == 1:
            for total in self.totals:
                if value <= total and total:
                    yield 1.0, Share(number.text, value / total, value / total, 1 / total,
                                     relation, counted="attempt"), ("pass^1",)  # fmt: skip
        if number.unit == "of":
            share = value / number.total if number.total else 0.0
            if number.total in self.task_counts:
                yield 0.0, Share(number.text, share, share, 1 / number.total, relation,
                                 counted="task", total=number.total), ()  # fmt: skip
            elif number.total in self.totals:
                yield 0.0, Share(number.text, share, share, 1 / number.total, relation), (
                    "pass^1",
                )  # fmt: skip
            elif number.total <= 10 or number.total in (100, 1000) or not number.noun:
                yield 0.0, Share(number.text, share, share, min(1 / number.total, 0.06),
                                 relation), ()  # fmt: skip

    def _tasks_ahead(
        self, one: _Sentence, number: _Number, words: str, *, is_after: bool
    ) -> Iterator[tuple[float, Statement]]:
        """A number of tasks on which one of two runs passes more attempts than the other."""
        sign = 0 if re.match("tie|equal|same|draw", words) else 1
        sign = -1 if re.match("worse|lower|behind|lose|lost", words) else sign
        total = number.total or next(iter(self.task_counts), 1)
        codes = [ord(code) - 97 for code, start, _ in one.runs if code.isalpha()
                 and (start >= number.end if is_after else start < number.start)
                 and (is_after or not _OBJECT.search(one.text[:start]))]  # fmt: skip
        first = codes[0 if is_after else -1] if codes else ord(self._last_run[:1] or "~") - 97
        named = dict.fromkeys(ord(code) - 97 for code, *_ in one.runs if code.isalpha())
        others = [run for run in named if run != first] or [
            run for run in range(len(self.names)) if run != first
        ]
        is_sure = 0 <= first < len(self.names) and len(others) == 1
        for pair in [(first, others[0])] * is_sure:
            yield 0.0, Difference(
                f"{words.strip()} {number.text}", *pair, sign, kind="tasks",
                share=number.value / total, count=int(number.value),
            )  # fmt: skip

    def _is_change(self, one: _Sentence, number: _Number) -> bool:
        if number.unit != "%":
            return False
        before, after = one.text[: number.start], one.text[number.end :]
        return bool(
            re.search(r"\bby\s*$|\b(?:cut|split|halv)\w*\b[^,;%]* in\s*$|\b(?:gain|improvement|increase|reduction|drop|decrease|loss|change"
                      r"|cut)s? of\s*$", before)
            or re.match(r"\s*(?:relative|better|higher|lower|worse|more|fewer|less|improvement|"
                        r"increase|reduction|drop|gain|decrease|in relative)\b", after)
        )  # fmt: skip

    def _lifts(self, one: _Sentence, number: _Number) -> Iterator[tuple[float, Statement]]:
        sign = self._sign(one, number)
        pairs = list(self._pairs(one, number))
        for (cost, metric, failing), (price, pair) in itertools.product(
            self._meanings(one, number), pairs
        ):
            if metric.startswith("tasks:"):
                continue
            size = {"points": "points", "x": "ratio"}.get(number.unit, "percent")
            turned = -sign if failing else sign
            yield cost + price, Difference(
                number.text, *pair, turned, metric=metric, failing=failing and size != "points",
                step=number.step, relation=number.relation,
                ends=number.ends if size == "points" else None,
                **{size: number.value},  # type: ignore[arg-type]
            )  # fmt: skip

    def _sign(self, one: _Sentence, number: _Number) -> int:
        words = [
            (one.distance(*sorted((match.start(), number.start))), match)
            for match in POLARITY.finditer(one.text)
        ]
        if not words:
            return 0
        behind = re.compile(r"\s*(?:points?|percent)?\s*").match(one.text, number.end)
        nearest = POLARITY.match(one.text, behind.end()) if behind else None
        nearest = nearest or min(words, key=lambda pair: pair[0])[1]
        sign = 1 if nearest["up"] or nearest["rise"] else -1
        return -sign if re.match(r"\s+by\s+⟦", one.text[nearest.end() :]) else sign

    def _pairs(
        self, one: _Sentence, number: _Number
    ) -> Iterator[tuple[float, tuple[int | None, int | None]]]:
        codes = [(ord(code) - 97, s, e) for code, s, e in one.runs if code.isalpha()]
        after = [run for run, s, _ in codes if s >= number.end and _OBJECT.search(one.text[:s])]
        before = [run for run, s, _ in codes if s < number.start]
        objects = [run for run, s, _ in codes if s < number.start and _OBJECT.search(one.text[:s])]
        subjects = [run for run in before if run not in objects]
        moved = re.match(
            r"\s*(?:points?\s*)?(?:from|between)\s*⟦(\w)⟧\s*(?:to|and)\s*⟦(\w)⟧",
            one.text[number.end :],
        )
        if moved:
            yield -2.0, (ord(moved[2]) - 97, ord(moved[1]) - 97)
        last = max((e for _, s, e in codes if s < number.start), default=0)
        if subjects and objects and re.fullmatch(r"\s*by\s*", one.text[last : number.start]):
            if before[-1] != subjects[0]:
                yield -1.0, (subjects[0], before[-1])
        if after:
            subject = next((run for run in subjects if run != after[0]), None)
            if subject is None and self._last_run.isalpha():
                subject = ord(self._last_run) - 97
            if subject is not None and subject != after[0]:
                yield 0.0, (subject, after[0])
        if objects and subjects and subjects[-1] != objects[-1]:
            yield 0.5, (subjects[-1], objects[-1])
        both = list(dict.fromkeys(run for run, *_ in codes))
        if len(both) == 2:
            first = next(s for run, s, _ in codes if run == both[0])
            if _OBJECT.search(one.text[:first]):
                both.reverse()
            yield 2.0, (both[0], both[1])
        elif len(both) == 1 and len(self.names) == 2:
            yield 2.0, (both[0], 1 - both[0])

    def _meanings(self, one: _Sentence, number: _Number) -> Iterator[tuple[float, str, bool]]:
        """The metrics that the number may be of, and whether it counts failures."""
        group = next(group for group in one.groups() if number in group)
        first, last = group[0].start, group[-1].end
        listed = self._listed(one, group, number)
        polarity = self._is_failing(one, number)
        found: dict[tuple[str, bool], float] = {}
        for cue in one.cues:
            if cue.end <= number.start:
                cost = one.distance(cue.end, first if len(group) > 1 else number.start)
                others = [n for n in one.numbers if cue.end <= n.start < first]
                cost = min(cost, 4.0 + 0.1 * cost, 6.0) if others else 0.6 * cost
            else:
                cost = one.distance(last, cue.start)
                between = [n for n in one.numbers if last <= n.start < cue.start]
                if any(not self._is_beside(one, number, other) for other in between):
                    cost += 8
                if re.search(r"[:;]", one.text[last : cue.start]) or _OWN.match(one.text, cue.end):
                    cost += 4
            if listed is not None:
                cost = -2.0 if cue is listed else cost + 6
            failing = polarity if cue.failing is None else cue.failing
            if cue.metric == "tasks:some":
                failing = False
            for side, more in ((failing, 0.0), (not failing, 5.0)):
                if more and (cue.failing is not None or cue.metric == "tasks:some"):
                    continue
                key = (cue.metric, side)
                found[key] = min(found.get(key, 99.0), max(cost, -2.0) + cue.weight + more)
        for metric in self._ends_of_runs(one, group, number):
            found[metric, False] = -9.0
        if (
            len(group) == 2
            and group[1] is number
            and re.search(r"→|->|\bto\b", one.text[group[0].end : number.start])
        ):
            for cue in one.cues:
                if re.match(r"tasks[<@^]", cue.metric) and cue.weight < 8:
                    found.setdefault((cue.metric, False), 99.0)
                    found[cue.metric, False] = min(found[cue.metric, False], 4.0)
        context = self._last_cue
        if context is not None and not found:
            failing = polarity if context.failing is None else context.failing
            found[context.metric, failing] = 3.0
        default = 4.0 if not one.cues else 7.0
        is_of_tasks = re.match(
            rf"\s*of(?: the| its| all| our)*\s*(?:\d+ )?(?:{_TASK})\b", one.text[number.end :]
        )
        if is_of_tasks and any(re.match("tasks[<@^~:]", cue.metric) for cue in one.cues):
            default = 12.0
        if number.unit == "tasks" or (number.unit == "of" and number.total in self.task_counts):
            if polarity:
                found.setdefault(("tasks<n", True), default)
            default = 12.0
        found.setdefault(("pass^1", polarity), default)
        for (metric, failing), cost in found.items():
            yield cost, metric, failing

    def _ends_of_runs(self, one: _Sentence, group: list[_Number], number: _Number) -> Iterator[str]:
        """The worst or the best run, where single runs lie between numbers or on one side."""
        if not re.search(rf"\b(?:{_ATT})\b", one.text):
            return
        before = one.text[: group[0].start]
        if len(group) == 2 and re.search(
            r"\b(?:between|rang\w+(?: from)?|span\w*|var\w+(?: from| between)?|anything from)\W*$",
            before,
        ):
            yield "tasks:worst" if number is group[0] else "tasks:best"
        denied = re.search(r"\b(?:no|none|never|not|neither|0 of|0% of)\b", before, re.I)
        if number.relation in (">=", "<=") and denied:
            yield "tasks:best" if number.relation == ">=" else "tasks:worst"

    def _is_beside(self, one: _Sentence, number: _Number, other: _Number) -> bool:
        """Whether another number is all tasks, or says the same in brackets."""
        if other.unit.startswith("size") or (
            other.unit == "tasks" and int(other.value) in self.task_counts
        ):
            return True
        gap = one.text[number.end : other.start]
        return re.fullmatch(r"[^,;()]*\(\s*", gap) is not None

    def _listed(self, one: _Sentence, group: list[_Number], number: _Number) -> _Cue | None:
        """The cue of a number in a list that is as long as a list of cues: k = 1, 5 (54%, 75%)."""
        if len(group) < 2:
            return None
        cues = sorted(one.cues, key=lambda cue: cue.start)
        before = [cue for cue in cues if cue.end <= group[0].start and cue.weight < 0]
        if len(before) >= len(group) and len({cue.metric for cue in before[-len(group) :]}) > 1:
            return before[-len(group) :][group.index(number)]
        return None

    def _is_failing(self, one: _Sentence, number: _Number) -> bool:
        places = []
        for pattern, side in ((_FAIL, True), (_PASS, False)):
            for match in re.finditer(pattern, one.text, re.IGNORECASE):
                if match.end() <= number.start:
                    cost = one.distance(match.end(), number.start)
                else:
                    cost = one.distance(number.end, match.start())
                    between = any(number.end <= n.start < match.start() for n in one.numbers)
                    cost += 6 * between
                places.append((cost, side))
        return min(places)[1] if places else False

    def _owners(self, one: _Sentence, number: _Number) -> Iterator[tuple[float, tuple[int, ...]]]:
        """The runs that the number may be of."""
        if len(self.names) == 1:
            yield 0.0, (0,)
            return
        listed = self._respective(one, number)
        for code, start, end in one.runs:
            owners = self._runs_of(code)
            if code == "*" and len(named := {c for c, *_ in one.runs if c.isalpha()}) > 1:
                owners = tuple(ord(c) - 97 for c in sorted(named))
            if end <= number.start:
                gap = one.text[end : number.start]
                cost = 0.0 if _BESIDE.fullmatch(gap) else one.distance(end, number.start)
                names = sum(end <= s < number.start for _, s, _ in one.runs)
                cost += 2 * names
                if cost and _OBJECT.search(one.text[:start]):
                    cost += 4
                earlier = [n for n in one.numbers if n.end <= start]
                if earlier and re.search(r",|\band\b|;|\bto\b", gap):
                    cost += 3 * bool(_BEHIND.fullmatch(one.text[earlier[-1].end : start]))
            else:
                group = next(group for group in one.groups() if number in group)
                between = one.text[number.end : group[-1].start]
                is_shared = group[-1].end <= start and not re.search(
                    r"\b(?:from|to|vs|against)\b|→|->", between
                )
                ahead = group[-1].end if is_shared else number.end
                gap = one.text[ahead:start]
                is_by = re.fullmatch(r"[^,;()]*\bby\s*", gap) is not None
                cost = (
                    0.5 if is_by or _BEHIND.fullmatch(gap) else one.distance(number.end, start) + 4
                )
                if _OWN.match(one.text, end):
                    cost += 6
            if listed is not None:
                cost = -1.0 if code == listed else cost + 4
            yield cost, owners
        if self._last_run and not any(end <= number.start for _, _, end in one.runs):
            yield 3.0 if one.runs else 0.0, self._runs_of(self._last_run)
        if self._last_run:
            return
        if not one.runs:
            yield 3.0, ()

    def _respective(self, one: _Sentence, number: _Number) -> str | None:
        """The run of a number in a list that is as long as the names before it, in their order."""
        group = next(group for group in one.groups() if number in group)
        if len(group) < 2:
            return None
        before = [run for run in one.runs if run[2] <= group[0].start and run[0].isalpha()]
        gap = one.text[group[0].start - 8 : group[1].start]
        later = [run for run in one.runs if run[1] >= group[-1].end]
        is_moved = len(group) == 2 and re.search(r"\bfrom\b.*\bto\b|→|->", gap)
        if is_moved and len(before) == 1 and later and not _OBJECT.search(one.text[: before[0][1]]):
            return before[0][0]
        if is_moved:
            _, pair = min(self._pairs(one, group[1]), default=(0, (None, None)))
            if None not in pair:
                return "".join(chr(97 + pair[1 - group.index(number)]))  # type: ignore[operator]
        earlier = [n.end for n in one.numbers if n.end <= group[0].start]
        local = [run for run in before if not earlier or run[1] >= max(earlier)]
        if len(local) == 1 and len(group) == 2 and re.search(r"\bvs\b|against", gap):
            named = dict.fromkeys(code for code, *_ in one.runs if code.isalpha())
            rest = [code for code in named if code != local[0][0]]
            if len(rest) == 1:
                return [local[0][0], rest[0]][group.index(number)]
        for names in [before, *one.name_lists()]:
            codes = list(dict.fromkeys(code for code, *_ in names))
            if len(codes) == len(group) and names[-1][2] <= group[0].start:
                return codes[group.index(number)]
        return None

    def _runs_of(self, code: str) -> tuple[int, ...]:
        if code == "*":
            return tuple(range(len(self.names)))
        return tuple(ord(part) - 97 for part in code.split("+") if part.isalpha())
