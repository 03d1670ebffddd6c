"""A small grammar of claims: a sentence becomes shares, differences and sizes, each with its run.

A sentence is rewritten step by step. Every phrase that is understood (a run, a metric in signs or
in words, an interval, a count, a difference) becomes a token, so that later steps see its place
and kind only. Numbers that no step understands are kept as such: they make a sentence not
checkable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from passhat.reporting.review.statements import POLARITY, Size, Unread

__all__ = ["BENCHMARK", "Reader", "Value"]


_N = r"(?:\d+(?:\.\d+)?|\.\d+)"
_INT = r"\d+"
_ATT = (
    r"(?:attempts?|tries|try|trials?|runs?|samples?|rollouts?|seeds?|repeats?|repetitions?|"
    r"generations?|completions?|episodes?|shots?|chances|times)"
)
_TASK = (
    r"(?:tasks?|problems?|questions?|issues?|instances?|examples?|items?|prompts?|cases?|tickets?)"
)
_UNITS = {
    **{
        w: n
        for n, w in enumerate(
            ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"], 2
        )
    },
    **{
        w: n
        for n, w in enumerate(
            ["eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen"], 11
        )
    },
    **{
        w: 10 * n
        for n, w in enumerate(["twenty", "thirty", "forty", "fifty", "sixty", "seventy"], 2)
    },
    "eighty": 80,
    "ninety": 90,
    "one": 1,
    "hundred": 100,
    "zero": 0,
}
_WORD = "|".join(sorted(_UNITS, key=len, reverse=True))
_NUMBER_WORDS = re.compile(
    rf"(?<=out of )\b({_WORD})\b|(?<=\bin )\b({_WORD})\b(?= {_ATT})|"
    rf"\b((?:{_WORD})(?:[ -](?:{_WORD}))*)(?=[ -](?:of|in (?:\d|{_WORD})|out of|%|per ?cent|"
    rf"points?|in[ -]a[ -]row|"
    rf"fold|must|consecutive|(?:[a-z-]+ ){{0,1}}(?:{_TASK}|{_ATT})\b))|(?<=\bin )(ten|hundred)\b|"
    rf"(?<=all )\b({_WORD})\b|(?<=\dof )({_WORD})\b",
    re.IGNORECASE,
)
_FRACTIONS = {"half": 50.0, "third": 100 / 3, "quarter": 25.0, "fifth": 20.0, "tenth": 10.0}


def _spell(match: re.Match[str]) -> str:
    total = 0
    for word in re.split(r"[ -]", next(group for group in match.groups() if group).lower()):
        value = _UNITS[word]
        total = max(total, 1) * 100 if word == "hundred" else total + value
    return str(total)


def _fraction(match: re.Match[str]) -> str:
    times = {"two": 2, "three": 3, "four": 4}.get((match[1] or "").lower(), 1)
    return f"~{times * _FRACTIONS[match[2].lower()]:.1f}%"


_REWRITES: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"[−‒]", "-"),
    (r"’", "'"),
    (r"(?<=\d),(?=\d{3}\b)(?!\d{3}\s?%)", ""),
    (r"(?<![\d.,\[(])(\d+),(\d{1,2})(?=\s?(?:%|per ?cent))|\b(0),(\d+)\b", r"\1\3.\2\4"),
    (
        r"\b(\d+(?:\.\d+)?)k(?= (?:\w+ )?(?:tasks|problems|questions|attempts|runs|samples))",
        lambda m: str(int(float(m[1]) * 1000)),
    ),
    (r"\b(?:vs\.?|versus|as opposed to|as against)(?=\W)\\?", "vs"),
    (r"\b(?:compared|relative|in comparison|in contrast) (?:to|with)\b", "against"),
    (r"\b(?:e\.g|i\.e|approx|al|cf|resp|Fig|Sec|Tab|no)\.", " "),
    (
        r"\b(?:a |one )?(two|three|four|one|a)?[ -]?(half|third|quarter|fifth|tenth)s?(?= (?:of|"
        r"lower|higher|"
        r"fewer|more|less|better|worse)\b)",
        _fraction,
    ),
    (
        r"\s?(?:per ?cent(?:age)?[ -]points?|%[ -]points?|p\.p\.|(?<=\d)[ -]?p\.?p\.?(?!\w)|"
        r"\bpts?\b|-point\b)",
        " points",
    ),
    (r"(?<=\d)\s?(?:%|per ?cent\b)", "%"),
    (r"\b(?:nearly|almost) all\b", ">=90%"),
    (
        r"\b(?:about|roughly|approximately|around|nearly|almost|some|just (?:over|"
        r"under))\s+(?=[~\d.]*\d)|≈\s*|~\s*",
        "~",
    ),
    (
        r"(?:\b(?:more than|over|above|at least|exceed(?:s|ed|ing)?|better than|greater than|"
        r"higher than|"
        r"upwards of|no less than|surpass(?:es|ed)|tops)|>=?|≥)\s*~?(?=\d[\d.]*(?:%| points))",
        ">=",
    ),
    (
        r"(?:\b(?:less than|under|below|at most|fewer than|lower than|worse than|up to|"
        r"no more than)|<=?|≤)"
        r"\s*~?(?=\d[\d.]*(?:%| points))",
        "<=",
    ),
)


def plain_number(text: str) -> str:
    """The text with numbers, units and bounds written in one way."""
    text = re.sub(r"\bone (?=of \d[\d.]*\s?%)", "that ", text, flags=re.IGNORECASE)
    text = _NUMBER_WORDS.sub(_spell, text)
    for pattern, new in _REWRITES:
        text = re.sub(pattern, new, text, flags=re.IGNORECASE)
    return text


_METRIC = re.compile(
    r"(?<![\w@^])(g-?pass|pass|maj|cons|avg|mean|best|worst)\s?([@^])\s?\{?(\d+|k\b|"
    r"n\b)?\}?(?::0?\.\d+)?",
    re.IGNORECASE,
)
# A phrase that names the attempts a share is about; K is the number, "n" all that were made.
_PROTOCOLS: tuple[tuple[str, str], ...] = (
    (
        rf"\bat least (?:once|1|one)(?: \w+)? (?:in|of|out of|within|over|across|with|"
        rf"from) (?:the |its |all )?"
        rf"(?P<k>{_INT})(?: {_ATT})?\b",
        "@",
    ),
    (rf"\b(?:any|1|one) (?:out )?of (?:the |its )?(?P<k>{_INT}) {_ATT}\b", "@"),
    (
        rf"\b(?:given|with|within|in|after|using|allowed|has|gets?)(?: an?)? (?:budget of |"
        rf"up to |at most )?"
        rf"(?P<k>{_INT}) {_ATT}\b(?! (?:each|per|for each|on|in total|of))",
        "@",
    ),
    (rf"\bbest of (?:the |its )?(?P<k>{_INT})(?: {_ATT})?", "@"),
    (
        r"\bat least (?:once|one (?:\w+)?)\b|\b(?:in|on|with) any (?:single )?(?:attempt|try|"
        r"run)\b",
        "@n",
    ),
    (rf"\b(?:in |on |over |for )?(?P<k>{_INT})(?: times)? (?:out )?of (?P=k)\b(?: {_ATT})?", "^"),
    (
        rf"\b(?:in |on |when |if |over )?(?:all|each) (?:of )?(?:the |its |their )?(?P<k>{_INT})"
        rf"(?: {_ATT}| must pass| pass\b| succeed)(?: (?:must )?(?:pass|succeed))?",
        "^",
    ),
    (rf"\b(?P<k>{_INT})(?: {_ATT})?[ -]in[ -]a[ -]row\b|\b(?P<k2>{_INT}) consecutive {_ATT}", "^"),
    (
        rf"\b(?:in |on )?every (?:single )?(?:time|{_ATT})\b|\b(?:in |on )?all (?:of )?(?:its |"
        rf"the |their )?"
        r"(?:attempts|runs|tries|trials|repetitions)\b|\bin each (?:attempt|run|try|trial)\b|"
        r"\beach time\b|"
        r"\balways\b|\bconsistently\b|\breliably\b|\bwithout fail\b",
        "^n",
    ),
    (
        r"\b(?:on |in |at |by )?(?:its |the |their )?(?:very )?first (?:try|attempt|time|shot|"
        r"go|run)\b|"
        r"\b(?:in |on |of |with |by )?(?:a |one |the )?(?:single|individual)[ -](?:attempt|try|"
        r"run|trial|shot)s?\b|"
        r"\b(?:in|with|on|of) (?:only |just )?(?:one|1) (?:attempt|try|run|trial|shot|go)\b|"
        r"\bper attempt\b|"
        r"\bone-try\b|\bon average\b",
        "^1",
    ),
)
_END = r"([-+]?\d*\.?\d+)\s?(%?)"
_ENDS = rf"{_END}\s*(?:points?)?\s*(?:,|to|-|–|and|\.\.\.?)\s*{_END}(\s?points)?"
_INTERVALS = re.compile(
    rf"[(,]?\s*(?:{_N}% )?(?:confidence intervals?|credible intervals?|intervals?|CIs?|bounds?)\b"
    rf"(?: (?:of the (?:paired )?(?:lift|difference|gap)|for new tasks|for these tasks|is|was|"
    rf"of|from|"
    rf"runs|between))*[:=,]?\s*[\[(]?\s*{_ENDS}\s*[\])]?"
    rf"|\(?\[\s*{_ENDS}\s*\]\)?|\(\s*{_ENDS}\s*\)|\bbetween {_ENDS}",
    re.IGNORECASE,
)
_ERRORS = re.compile(
    rf"\(?\s*(?P<plus>±|\+/-)\s*(?P<half>{_N})\s?%?\s*(?P<se>SE|SEM|s\.e\.)?\s*(?:points)?\)?|"
    rf"[(,]?\s*\b(?:SE|SEM|s\.e\.|standard error)s?\s*(?:of|=|:|is)?\s*(?P<error>{_N})%?\)?",
)
_DROPPED = (
    rf"\(?\b{_N}%[ -](?:confidence|credible|CIs?|intervals?|level|bands?)\b(?: (?:level|"
    rf"intervals?))?",
    rf"\b(?:temperatures?|T|top_p|seed|α|alpha)\s*(?:=|of|is|was|at|:)?\s*{_N}(?:(?:,| and|"
    rf" or) {_N})*",
    rf"\b(?:Table|Section|Figure|Fig|Sec|Tab|Appendix|Chapter|Equation|version|Python|line|page|"
    rf"step)\s?{_N}\w*",
    r"\[\d+(?:,\s?\d+)*\]|\b(?:19|20)\d\d\b|[$€£]\s?\d[\d.,]*|(?<!⟦)\bv\d[\w.]*|#\d+|\b\d+-shot\b",
    rf"\b{_N}\s?(?:seconds?|minutes?|hours?|days?|ms|s|steps?|turns?|tokens?|dollars?|tools?|GB|"
    rf"MB|B|M|"
    r"million|billion|models?|agents?|weeks?|months?|years?|calls?)\b",
)
_P_VALUE = re.compile(
    rf"\(?\bp(?:-value)?s?\s?(?:\([^)]*\)\s?)?(?:<=|>=|[<=>≤≥])\s?{_N}\)?", re.IGNORECASE
)
_RATIO = re.compile(
    rf"(?P<op>>=|<=|~|more than |nearly )?\s?\b(?:(?P<verb>doubl|tripl|quadrupl|halv)(?:e[sd]?|"
    rf"ing)\b|"
    rf"(?P<adv>twice|half) as \w+(?: as)?|(?P<x>{_N})\s?(?:x|times|-?fold)\b(?: (?:better|"
    rf"higher|as \w+|"
    rf"more \w+|increase|improvement|gain)(?: as| than)?)?)",
    re.IGNORECASE,
)
_RATIOS = {"doubl": 2.0, "tripl": 3.0, "quadrupl": 4.0, "halv": 0.5, "twice": 2.0, "half": 0.5}

BENCHMARK = (
    r"(?:SWE-?bench|HumanEval|MBPP|GSM-?8K|MATH|AIME|GPQA|MMLU|HLE|SimpleQA|IFEval|AgentDojo|"
    r"WebArena|OSWorld|"
    r"GAIA|BFCL|Aider|BrowseComp|CRUXEval|DS-1000|APPS|Spider|BIRD|ARC-|[\wτ-]*-?[Bb]ench|"
    r"[A-Z]\w*Eval)"
)
_UNKNOWN = re.compile(
    r"(?<![\w⟦@^-])(?:[A-Z][A-Za-z]*-?v?\d[\w.-]*\w|[A-Z][A-Za-z]*-?\d|(?:gpt|claude|llama|"
    r"gemini|qwen|mistral|grok)"
    r"[\w.-]*|[A-Z][a-zA-Z]+(?:-[\w.]+)*(?='s (?!\w+ing)| (?:reach|achiev|score|gets|report|"
    r"hits|solves|passes|obtain|"
    r"attain|manages|trails|beats|gains|wins|succeeds|fails)))"
)
_COMMON = re.compile(
    rf"(?:{BENCHMARK}|[TNKHpn]\d|The|This|That|It|We|Our|Its|Their|Each|Every|Accuracy|Success|"
    rf"Performance|Model|"
    r"Agent|Baseline|Ours|One|Table|Figure|Section|Python|F1|Which|What|Who|And|But|Only|"
    r"Everything)\b"
)


@dataclass(slots=True)
class Value:
    """A number as it is written, before it has an owner and a metric."""

    text: str
    low: float
    high: float
    step: float
    relation: str = "="
    failing: bool = False
    counted: str = ""
    bare: bool = False


@dataclass(slots=True)
class Reader:
    """One sentence, on its way to tokens; names are the runs it may be about."""

    names: Sequence[Sequence[str]]
    values: list[Value] = field(default_factory=list)
    metrics: list[str] = field(default_factory=list)
    intervals: list[tuple[tuple[float, float] | None, float | None, str]] = field(
        default_factory=list
    )
    sizes: list[Size] = field(default_factory=list)
    gaps: list[tuple[float, float, str, str]] = field(default_factory=list)
    ratios: list[tuple[float, str, str]] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)

    def rewrite(self, sentence: str) -> str:
        """The sentence with tokens in place of what was understood."""
        text = self._mark_names(sentence)
        text = plain_number(text)
        text = _METRIC.sub(self._metric, text)
        text = _P_VALUE.sub(self._p_value, text)
        text = self._mark_counts(text)
        for pattern, family in _PROTOCOLS:
            mark = partial(self._protocol, family=family)
            text = re.sub(pattern, mark, text, flags=re.IGNORECASE)
        text = _INTERVALS.sub(self._interval, text)
        text = _ERRORS.sub(self._error, text)
        text = self._mark_sizes(text)
        for pattern in _DROPPED:
            text = re.sub(pattern, " ", text)
        text = re.sub(rf"(>=|<=|~)?([-+])?\s?({_N})[ -]points?\b", self._gap, text)
        text = _RATIO.sub(self._ratio, text)
        return re.sub(r"\s+", " ", self._mark_values(text))

    def _mark_names(self, text: str) -> str:
        words = sorted(
            ((word, run) for run, group in enumerate(self.names) for word in group if word),
            key=lambda pair: -len(pair[0]),
        )
        named = False
        for word, run in words:
            text, count = re.subn(
                rf"(?<![\w⟦-]){re.escape(word)}(?:['’]s?)?(?![\w⟧]|-\w|\.\d)",
                f" ⟦r{run}⟧ ",
                text,
                flags=re.IGNORECASE,
            )
            named = named or count > 0
        if not named and len(self.names) == 2 and re.search(r"(?<![\w-])B(?!\w|-)", text):
            for run, letter in enumerate("AB"):
                text = re.sub(rf"(?<![\w-]){letter}(?:'s)?(?![\w@^-])", f" ⟦r{run}⟧ ", text)
        text = re.sub(
            r"\b(?:both|each of)\s+⟦r(\d+)⟧\s+and\s+⟦r(\d+)⟧", "⟦r*⟧", text, flags=re.IGNORECASE
        )
        text = re.sub(
            r"\b(?:both|either|all)(?: (?:of )?(?:the )?(?:two |three )?(?:agents|models|"
            r"systems))|\bboth\b(?! ⟦)",
            " ⟦r*⟧ ",
            text,
            flags=re.IGNORECASE,
        )
        return _UNKNOWN.sub(self._unknown, text)

    def _unknown(self, match: re.Match[str]) -> str:
        word = match[0]
        return word if _COMMON.match(word) else " ⟦r?⟧ "

    def _metric(self, match: re.Match[str]) -> str:
        k = match[3] if match[3] and match[3].isdigit() else "k"
        self.metrics.append(f"{match[1].lower()}{match[2]}{k}")
        return f" ⟦m{len(self.metrics) - 1}⟧ "

    def _protocol(self, match: re.Match[str], family: str) -> str:
        groups = match.groupdict()
        k = groups.get("k") or groups.get("k2") or ""
        self.metrics.append(f"tasks{family}{k}" if len(family) == 1 else f"tasks{family}")
        return f" ⟦m{len(self.metrics) - 1}⟧ "

    def _p_value(self, _: re.Match[str]) -> str:
        self.unread.append(Unread("the p-value", "a review computes no p-value", blocks=True))
        return " "

    def _interval(self, match: re.Match[str]) -> str:
        low, low_unit, high, high_unit, points = next(
            match.groups()[at : at + 5] for at in range(0, 20, 5) if match.groups()[at] is not None
        )
        if re.match(r"\(\s*\d+\s?,\s?\d+\s*\)$", match[0]) and not low_unit + high_unit:
            return match[0]
        unit = "points" if points else "%" if low_unit or high_unit else ""
        self.intervals.append(((float(low), float(high)), None, unit))
        return f" ⟦i{len(self.intervals) - 1}⟧ "

    def _error(self, match: re.Match[str]) -> str:
        half = match["half"] or match["error"]
        unit = "se" if match["error"] or match["se"] else "±"
        self.intervals.append((None, float(half), unit))
        return f" ⟦i{len(self.intervals) - 1}⟧ "

    def _mark_counts(self, text: str) -> str:
        """Shares as counts: 3 of 4 tasks, 9 in 10 attempts, all 40 tasks, no failures."""
        text = re.sub(
            rf"(~)?\b({_INT})(?: times)?\s?(?:/|out of|of|in)\s?(every |each |the |its |all |"
            rf"those )?({_INT})"
            rf"(?!\.?\d|\s?%)(?=(?: \w+)? ({_TASK}|{_ATT})\b|(?P<end>\W))?",
            self._count,
            text,
            flags=re.IGNORECASE,
        )
        total = re.search(
            rf"\bof (?:the |its |all )?\s*(?:⟦r\d+⟧\s*)?({_INT}) ({_TASK}|{_ATT})\b,?",
            text,
            re.IGNORECASE,
        )
        if total:
            text = re.sub(
                rf"(?<![\d.@^⟦\w])({_INT})(?=(?: were| are| was)?,? (?:right|correct\w*|passed|"
                rf"solved|succeeded|"
                rf"fail\w*|pass|wrong)\b|\s*[.)]?$)",
                lambda m: self._part(m, total),
                text,
            )
        never = (
            r"(?:never (?:once )?fail(?:s|ed)?|(?:zero|no|0) failures?|without (?:a single |"
            r"any |a )?failures?)"
        )
        runs = (
            rf"(?:in|over|across|of|after|out of) (?:all |its |"
            rf"our )?({_INT}) (?:\w+ )?({_TASK}|{_ATT})\b"
        )
        text = re.sub(
            rf"\b{never} {runs}|\b{runs},?(?P<between>[^.;\d]{{0,40}}?)\b{never}\b",
            self._never,
            text,
            flags=re.IGNORECASE,
        )
        whole = (
            (
                rf"\b(?:all|every(?: one)? of|each of)(?: of)?(?: the|"
                rf" its)?(?: ({_INT}))? ({_TASK})\b|"
                r"\b(?:zero|no|without any|without a single|0) (?:failures?|errors)\b|"
                r"\bnever (?:once )?fail(?:s|ed)?\b|"
                r"\bperfect (?:scores?|record|accuracy)|\bfail\w* (?:on |in )?(?:none|"
                r"no)(?: of the)?(?: ({_INT}))? ({_TASK})"
            )
            .replace("{_INT}", _INT)
            .replace("{_TASK}", _TASK)
        )
        return re.sub(whole, self._whole, text, flags=re.IGNORECASE)

    def _count(self, match: re.Match[str]) -> str:
        passed, total = int(match[2]), int(match[4])
        noun = (match[5] or "").lower()
        if passed == total and not re.fullmatch(_TASK, noun or "x"):
            return match[0]  # 4 times out of 4: the attempts that a share is about
        if (
            not total
            or passed > total
            or (not noun and "/" not in match[0] and "of" not in match[0])
        ):
            return match[0]
        is_task = bool(re.fullmatch(_TASK, noun))
        is_every = (match[3] or "").strip() in ("every", "each") or " in " in match[0].lower()
        relation = "~" if match[1] else "="
        step = min(1 / total, 0.06) if is_every else 1 / total
        self._add(
            Value(
                match[0],
                passed / total,
                passed / total,
                step,
                relation,
                counted="task" if is_task else "attempt" if noun else "",
            )
        )
        if not is_every:
            self.sizes.append(
                Size(
                    f"{total:,} {noun or 'tasks or attempts'}",
                    total,
                    is_task or not noun,
                    not is_task,
                )
            )
        return f" ⟦v{len(self.values) - 1}⟧ "

    def _part(self, match: re.Match[str], total: re.Match[str]) -> str:
        if match.start() < total.end() or not int(total[1]) or int(match[1]) > int(total[1]):
            return match[0]
        kind = "task" if re.fullmatch(_TASK, total[2], re.IGNORECASE) else "attempt"
        share = int(match[1]) / int(total[1])
        self._add(Value(f"{match[1]} of {total[1]}", share, share, 1 / int(total[1]), counted=kind))
        return f" ⟦v{len(self.values) - 1}⟧ "

    def _whole(self, match: re.Match[str]) -> str:
        if re.search(
            r"\b(?:on|over|across|for|than|in|of) $",
            match.string[: match.start()][-8:],
            re.IGNORECASE,
        ):
            return match[0]
        following = match.string[match.end() :]
        solved = r"(?:pass|solv|succe|complet|resol|crack|finish|right|correct|won)\w*"
        if match[2] and not (
            re.search(rf"\b{solved} (?:\w+ )?$", match.string[: match.start()], re.IGNORECASE)
            or re.match(rf"\s*(?:was|were|are|is|get|got)? ?{solved}", following, re.IGNORECASE)
        ):
            return match[0]
        kind = "task" if match[2] or match[4] else "attempt"
        count = match[1] or match[3]
        if count:
            self.sizes.append(Size(f"{int(count):,} tasks", int(count), True, False))
        verb = "" if kind == "task" and match[2] else "passes"
        self._add(Value(match[0].strip(), 1.0, 1.0, 0.002, counted=kind))
        return f" {verb} ⟦v{len(self.values) - 1}⟧ "

    def _never(self, match: re.Match[str]) -> str:
        count, noun = match[1] or match[3], (match[2] or match[4]).lower()
        is_task = bool(re.fullmatch(_TASK, noun))
        self.sizes.append(Size(f"{int(count):,} {noun}", int(count), is_task, not is_task))
        self._add(Value("no failures", 1.0, 1.0, 0.002, counted="attempt"))
        return f" {match['between'] or ''} passes ⟦v{len(self.values) - 1}⟧ "

    def _mark_sizes(self, text: str) -> str:
        words = r"(?:[A-Za-z][\w/-]* ){0,2}?"
        patterns = (
            (rf"\b[nN]\s?=\s?({_INT})\s+{_TASK}\b", "t"),
            (rf"\b[nNk]\s?=\s?({_INT})\s+(?:independent )?{_ATT}\b(?: each| per \w+)?", "a"),
            (rf"\b[nN]\s?=\s?({_INT})\b", "e"),
            (
                rf"(?<![\w.=@^⟦])({_INT})(?![.\d%])[ -](?:[a-z-]+ )?{_ATT}\b(?! (?:better|"
                rf"higher|as|more|faster|less|{_TASK}))"
                r"(?P<each> each| per \w+| on each| for each)?",
                "a",
            ),
            (
                rf"(?<![\w.=@^⟦])({_INT})(?![.\d%])[ -]{words}{_TASK}\b(?:\s*(?:x|"
                rf"×)\s*({_INT})(?: {_ATT})?(?: each)?)?",
                "t",
            ),
            (r"\bk\s?=\s?\d+", "k"),
        )
        for pattern, kind in patterns:
            text = re.sub(pattern, partial(self._size, kind=kind), text)
        return text

    def _size(self, match: re.Match[str], kind: str) -> str:
        if kind == "k":
            k = re.search(r"\d+", match[0])
            self.metrics = (
                [f"{word[:-1]}{k[0]}" if word.endswith("k") else word for word in self.metrics]
                if k
                else []
            )
            return " "
        if re.match(rf"{_INT} points?\b", match[0]):
            return match[0]
        count, phrase = int(match[1]), match[0].strip()
        per_task = (
            bool(re.search(r"\b(?:each|per)\b", phrase))
            or "each of" in match.string[: match.start()]
        )
        self.sizes.append(Size(phrase, count, kind != "a", kind != "t", per_task and kind == "a"))
        if kind == "t" and match.re.groups > 1 and match[2]:
            self.sizes.append(Size(f"{match[2]} attempts", int(match[2]), False, True, True))
        return f" ⟦s{len(self.sizes) - 1}⟧ {'tasks' if kind == 't' else ''} "

    def _gap(self, match: re.Match[str]) -> str:
        size = float(f"{match[2] or ''}{match[3]}")
        self.gaps.append((size, _step(match[3]), match[1] or "=", match[0].strip()))
        return f" {'+' if match[2] == '+' else ''} ⟦d{len(self.gaps) - 1}⟧ "

    def _ratio(self, match: re.Match[str]) -> str:
        word = (match["verb"] or match["adv"] or "").lower()
        relation = {"more than ": ">=", "nearly ": "~"}.get(
            (match["op"] or "=").lower(), match["op"] or "="
        )
        self.ratios.append(
            (_RATIOS[word] if word else float(match["x"]), relation, match[0].strip())
        )
        return f" ⟦c{len(self.ratios) - 1}⟧ "

    def _mark_values(self, text: str) -> str:
        text = re.sub(rf"(?<![\w.⟦])({_N})%?\s?(?:-|–|to)\s?({_N})%", self._range, text)
        text = re.sub(rf"(>=|<=|~)?\s?(?<![\w.⟦+-])({_N})%", self._percent, text)
        text = re.sub(
            r"(>=|<=|~)?\s?(?<![\w.⟦+$/-])((?:0?\.\d+)|1\.0+|0\.0+)(?![\w%]|\.\d)",
            self._decimal,
            text,
        )
        text = re.sub(
            r"(>=|<=|~)?\s?(?<![\w.⟦+$/@^#-])(\d{1,2}\.\d{1,2}|\d{1,2}|100(?:\.0+)?)(?![\w%⟧]|"
            r"\.\d|-\w)",
            self._bare,
            text,
        )
        for match in re.finditer(rf"(?<![\w⟦.-])[-+]?{_N}%?(?![\w⟧])", text):
            self.unread.append(
                Unread(match[0], "what this number counts was not understood", blocks=True)
            )
        return text

    def _range(self, match: re.Match[str]) -> str:
        if re.search(r"\bfrom\s*$", match.string[: match.start()]):
            return f"{match[1]}% to {match[2]}%"
        low, high = float(match[1]) / 100, float(match[2]) / 100
        if low > high or (
            match.string[: match.start()].count("⟦r") > 1 and POLARITY.search(match.string)
        ):
            return f"{match[1]}% vs {match[2]}%"
        self._add(Value(match[0], low, high, _step(match[2]) / 100))
        return f" ⟦v{len(self.values) - 1}⟧ "

    def _percent(self, match: re.Match[str]) -> str:
        share = float(match[2]) / 100
        self._add(Value(f"{match[2]}%", share, share, _step(match[2]) / 100, match[1] or "="))
        return f" ⟦v{len(self.values) - 1}⟧ "

    def _decimal(self, match: re.Match[str]) -> str:
        self._add(
            Value(match[2], float(match[2]), float(match[2]), _step(match[2]), match[1] or "=")
        )
        return f" ⟦v{len(self.values) - 1}⟧ "

    def _bare(self, match: re.Match[str]) -> str:
        share = float(match[2]) / 100
        self._add(Value(match[2], share, share, _step(match[2]) / 100, match[1] or "=", bare=True))
        return f" ⟦v{len(self.values) - 1}⟧ "

    def _add(self, value: Value) -> None:
        self.values.append(value)


def _step(text: str) -> float:
    return 10.0 ** -len(text.partition(".")[2])
