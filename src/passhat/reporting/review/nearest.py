"""The metric, the side and the runs that stand nearest to a number of a sentence.

Every reading has a cost: words, commas and other numbers between a number and what it may belong
to. The cheapest is the nearest one; those a little dearer are possible.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from passhat.reporting.review import statements as words
from passhat.reporting.review.marks import (
    Cue,
    MarkedSentence,
    Number,
    kind_of,
)
from passhat.reporting.review.statements import POLARITY, TASKS

__all__ = ["FAIL", "OBJECT", "PASS", "Nearest", "run_at"]

_FAR = 99.0
FAIL = (
    rf"{words.FAIL.pattern}|\b(?:fail\w*|empty|resist\w*|"
    r"defeat\w*|elud\w*|stump\w*|baffl\w*|out of(?: the)?\s*(?:⟦[^⟧]*⟧)?\s*reach|unsuccessful\w*|"
    r"beyond|never(?!\s+(?:\w+\s+){0,2}[<>])|not (?:be )?(?:solve|pass|complete|resolve|succeed|"
    r"right)\w*|not at all|none|without success|impossible|crash\w*)\b"
)
PASS = rf"{words.PASS.pattern}|\b(?:crack\w*|clears|handl\w+|answering|always|manages?)\b"
_BESIDE = re.compile(
    r"(?:'s)?\s*(?:[:=(,–—→-]|\b(?:at|with|is|was|has|had|gets?|got|reach\w*|scor\w+|manag\w+|only|"
    r"just|even|about|attains?|achiev\w+|obtains?|hits?|to|solv\w+|pass\w*|a|an|the|of|agent|model|"
    r"mean|success|rate|stands?|sits?|gets|comes?|out|in|still|now|already|completes?|"
    r"fails?)\b|\s)*"
)
_BEHIND = re.compile(
    r"\s*(?:%|\)|tasks\b|attempts\b|of the\b|ahead\b|\s)*(?:\b(?:for|in|by|with|from|of|on|under|"
    r"using)\b|\()\s*(?:the |our |its |agent |model |version |base |baseline )*"
)
_OWN = re.compile(r"(?:'s)?\s*(?:[:(=]|is\b|at\b|has\b|with\b|only\b|gets\b)?\s*\(?[~<>]?=?\d")
OBJECT = re.compile(
    r"\b(?:than|over|vs|against|behind|ahead of|above|below|short of|from|since|between|as|"
    r"(?:swap|replac|improv)\w*(?: on)?|(?:beat|outperform|surpass|exceed|top|"
    r"lead|trail|lag|edge|match|overt|outscor|dominat)\w*(?: up with| by)?)"
    r"\s+(?:that of |the |baseline |agent |model )*$",
    re.IGNORECASE,
)
_IN_BRACKETS = re.compile(r"(?:\s*[a-z]+){0,4}\s*\(\s*")
_ADJACENT = re.compile(r"\s*(?:(?:is|was|are|of|at|=|:|\()\s*)*")
_SINGLE_RUNS = r"\b(?:runs?|seeds?|trials?|repeats?|rounds?|repetitions?)\b"


def run_at(code: str) -> int:
    return ord(code) - ord("a")


@dataclass(slots=True)
class Nearest:
    """Finds what a number may be of; remembers run and metric of the sentence before."""

    names: Sequence[Sequence[str]]
    task_counts: frozenset[int]
    last_run: str = ""
    last_runs: tuple[str, ...] = ()
    """The runs of the last sentence that names any, in its order."""
    last_cue: Cue | None = None

    def remember(self, one: MarkedSentence) -> None:
        first = min((number.start for number in one.numbers), default=len(one.text))
        for code, start, _ in one.runs:
            is_subject = start < first and not OBJECT.search(one.text[:start])
            if is_subject or not self.last_run:
                self.last_run = code
                break
        named = tuple(dict.fromkeys(code for code, *_ in one.runs if code.isalpha()))
        self.last_runs = named or self.last_runs
        if one.cues:
            self.last_cue = one.cues[-1]

    # Metrics

    def meanings(self, one: MarkedSentence, number: Number) -> list[tuple[float, str, bool]]:
        """The metrics that the number may be of, and whether it counts failures."""
        group = one.group_of(number)
        polarity = self.is_failing(one, number)
        found: dict[tuple[str, bool], float] = {}
        for cue in one.cues:
            cost = self._cue_cost(one, group, number, cue) + cue.weight
            failing = polarity if cue.failing is None else cue.failing
            is_fixed = cue.failing is not None
            for side, more in ((failing, 0.0), (not failing, _FAR if is_fixed else 5.0)):
                key = (cue.metric, side)
                found[key] = min(found.get(key, _FAR), cost + more)
        trials = [key for key in found if key[0].startswith("tasks:trial")]
        nearest = min(trials, key=lambda key: found[key], default=("", False))
        for key in trials:  # every score has the number of its own run
            if key[0] != nearest[0]:
                del found[key]
        ends = list(self._ends_of_runs(one, group, number))
        for metric in ends:
            found[metric, False] = -9.0
        for metric in self._climbed_to(one, group, number):
            found[metric, False] = min(found[metric, False], 4.0)
        if not ends and found and self._is_climbed_from(one, group, number):
            found.setdefault(("pass^1", polarity), min(found.values()) + 1)
        if self.last_cue is not None and not found:
            failing = polarity if self.last_cue.failing is None else self.last_cue.failing
            found[self.last_cue.metric, failing] = 3.0
        is_count = number.unit == "tasks" or number.total in self.task_counts
        default = self._default_cost(one, number, is_count=is_count)
        if is_count and polarity:
            found.setdefault(("tasks<n", True), 7.0 if one.cues else 4.0)
        found.setdefault(("pass^1", polarity), default)
        return [(cost, metric, failing) for (metric, failing), cost in found.items()]

    def _default_cost(self, one: MarkedSentence, number: Number, *, is_count: bool) -> float:
        """The cost of reading a number without a cue as a share of single attempts."""
        is_of_tasks = re.match(
            rf"\s*of(?: the| its| all| our)*\s*(?:\d+ )?(?:{TASKS})\b", one.text[number.end :]
        )
        has_task_cue = any(re.match("tasks[<@^~:]", cue.metric) for cue in one.cues)
        if is_count or (is_of_tasks and has_task_cue):
            return 12.0
        if number.unit == "" and number.step == 1 and one.cues:
            return 10.0
        return 7.0 if one.cues else 4.0

    def _cue_cost(
        self, one: MarkedSentence, group: list[Number], number: Number, cue: Cue
    ) -> float:
        first, last = group[0].start, group[-1].end
        after = [other for other in one.numbers if other.start >= last]
        if after and _IN_BRACKETS.fullmatch(one.text[last : after[0].start]):
            last = after[0].end
        if cue.end <= number.start:
            cost = one.distance(cue.end, first)
            is_carried = any(cue.end <= other.start < first for other in one.numbers)
            cost = min(cost, 4.0 + 0.1 * cost, 6.0) if is_carried else 0.6 * cost
        else:
            cost = one.distance(last, cue.start)
            between = [other for other in one.numbers if last <= other.start < cue.start]
            if any(not self._is_beside(one, number, other) for other in between):
                cost += 8
            if re.search(r"[:;]", one.text[last : cue.start]) or _OWN.match(one.text, cue.end):
                cost += 4
        listed = self._listed(one, group, number)
        if listed is None:
            return cost
        return -2.0 if cue is listed else cost + 6

    def _climbed_to(
        self, one: MarkedSentence, group: list[Number], number: Number
    ) -> Iterator[str]:
        """The metrics of several attempts, for the second number of "35% to 68%"."""
        is_second = len(group) == 2 and group[1] is number
        if is_second and re.search(r"→|->|\bto\b", one.text[group[0].end : number.start]):
            for cue in one.cues:
                if re.match(r"tasks[<@^]", cue.metric) and cue.weight < 8:
                    yield cue.metric

    def _is_climbed_from(self, one: MarkedSentence, group: list[Number], number: Number) -> bool:
        """Whether it is where a rise begins: of single attempts, perhaps."""
        is_first = len(group) == 2 and group[0] is number
        gap = one.text[number.end : group[-1].start]
        before = one.text[: number.start]
        return is_first and bool(
            re.search(r"\bfrom\s*$", before) and re.search(r"→|->|\bto\b", gap)
        )

    def _ends_of_runs(
        self, one: MarkedSentence, group: list[Number], number: Number
    ) -> Iterator[str]:
        """The worst or the best run, where single runs lie between numbers or on one side."""
        if not re.search(_SINGLE_RUNS, one.text):
            return
        before = one.text[: group[0].start]
        if len(group) == 2 and re.search(
            r"\b(?:between|rang\w+(?: from)?|span\w*|var\w+(?: from| between)?|anything from)\W*$",
            before,
        ):
            yield "tasks:worst" if number is group[0] else "tasks:best"
        denied = re.search(r"\b(?:no|none|never|not|neither|0 of|0% of)\b", before, re.IGNORECASE)
        if number.relation in (">=", "<=") and denied:
            yield "tasks:best" if number.relation == ">=" else "tasks:worst"

    def _is_beside(self, one: MarkedSentence, number: Number, other: Number) -> bool:
        """Whether another number is all tasks, or says the same in brackets."""
        if other.unit.startswith("size"):
            return True
        is_all = other.unit == "tasks" and int(other.value) in self.task_counts
        gap = one.text[number.end : other.start]
        return is_all or _IN_BRACKETS.fullmatch(gap) is not None

    def _listed(self, one: MarkedSentence, group: list[Number], number: Number) -> Cue | None:
        """The cue of a number in a list that is as long as a list of cues: k = 1, 5 (54%, 75%)."""
        if len(group) < 2:
            return None
        cues = sorted(one.cues, key=lambda cue: cue.start)
        before = [cue for cue in cues if cue.end <= group[0].start and cue.weight < 0]
        last = before[-len(group) :]
        is_list = len(last) == len(group) and len({cue.metric for cue in last}) > 1
        is_list = is_list and not any(  # the first of them has a list of its own
            len(other) > 1 and last[0].end <= other[0].start < last[-1].start
            for other in one.groups
        )
        if is_list and _ADJACENT.fullmatch(one.text[last[-1].end : group[0].start]):
            gaps = (one.text[a.end : b.start] for a, b in itertools.pairwise(last))
            is_list = all(re.fullmatch(r"(?:,|/|&|\band\b|\bor\b|\s)*", gap) for gap in gaps)
        return last[group.index(number)] if is_list else None

    def is_failing(self, one: MarkedSentence, number: Number) -> bool:
        places = []
        for pattern, side in ((FAIL, True), (PASS, False)):
            for match in re.finditer(pattern, one.text, re.IGNORECASE):
                if match.end() <= number.start:
                    cost = one.distance(match.end(), number.start)
                else:
                    cost = one.distance(number.end, match.start())
                    cost += 6 * any(
                        number.end <= other.start < match.start() for other in one.numbers
                    )
                places.append((cost, side))
        return min(places)[1] if places else False

    # Runs

    def owners(
        self, one: MarkedSentence, number: Number
    ) -> Iterator[tuple[float, tuple[int, ...]]]:
        """The runs that the number may be of."""
        if len(self.names) == 1:
            yield 0.0, (0,)
            return
        listed = self._respective(one, number)
        for run in one.runs:
            is_before = run[2] <= number.start
            cost = self._before_cost(one, number, run) if is_before else 0.0
            cost = cost if is_before else self._behind_cost(one, number, run)
            if listed is not None:
                cost = -1.0 if run[0] == listed else cost + 4
            yield cost, self._runs_of(one, run[0])
        if self.last_run and not any(end <= number.start for _, _, end in one.runs):
            yield 3.0 if one.runs else 0.0, self._runs_of(one, self.last_run)
        elif not one.runs:
            yield 3.0, ()

    def _before_cost(self, one: MarkedSentence, number: Number, run: tuple[str, int, int]) -> float:
        _, start, end = run
        gap = one.text[end : number.start]
        cost = 0.0 if _BESIDE.fullmatch(gap) else one.distance(end, number.start)
        cost += 2 * sum(end <= other < number.start for _, other, _ in one.runs)
        if cost and OBJECT.search(one.text[:start]):
            cost += 4
        earlier = [other for other in one.numbers if other.end <= start]
        if earlier and re.search(r",|\band\b|;|\bto\b", gap):  # that of the number before
            cost += 3 * bool(_BEHIND.fullmatch(one.text[earlier[-1].end : start]))
        return cost

    def _behind_cost(self, one: MarkedSentence, number: Number, run: tuple[str, int, int]) -> float:
        _, start, end = run
        group = one.group_of(number)
        between = one.text[number.end : group[-1].start]
        is_contrast = re.search(r"\b(?:from|to|vs|against)\b|→|->", between)
        is_shared = group[-1].end <= start and not is_contrast
        gap = one.text[group[-1].end if is_shared else number.end : start]
        is_by = re.fullmatch(r"[^,;()]*\bby\s*", gap) is not None
        is_bound = is_by or _BEHIND.fullmatch(gap) is not None
        cost = 0.5 if is_bound else one.distance(number.end, start) + 4
        return cost + 6 * bool(_OWN.match(one.text, end))

    def _respective(self, one: MarkedSentence, number: Number) -> str | None:
        """The run of a number in a list that is as long as the names before it, in their order."""
        group = one.group_of(number)
        if len(group) < 2:
            return None
        place = group.index(number)
        if not one.runs and len(self.last_runs) == len(group):
            return self.last_runs[place]
        before = [run for run in one.runs if run[2] <= group[0].start and run[0].isalpha()]
        gap = one.text[group[0].start - 8 : group[1].start]
        is_rise = len(group) == 2 and re.search(r"\d%?\s*to\b|→|->", gap)
        has_later = any(start >= group[-1].end for _, start, _ in one.runs)
        local = self._named_since(one, group, before)
        if local and not (is_rise and has_later) and not re.search(r"\bvs\b|against", gap):
            return local
        if is_rise:
            if len(before) == 1 and has_later and not OBJECT.search(one.text[: before[0][1]]):
                return before[0][0]
            _, pair = min(self.pairs(one, group[1]), default=(0, None))
            if pair is not None:
                return chr(ord("a") + pair[1 - place])
        sides = self._compared_with(one, group, before) if len(group) == 2 else []
        if sides and re.search(r"\bvs\b|against", gap):
            return sides[place]
        for names in [before, *one.name_lists()]:
            codes = list(dict.fromkeys(code for code, *_ in names))
            is_apart = bool(names) and (
                names[-1][2] <= group[0].start or (not before and names[0][1] >= group[-1].end)
            )
            if len(codes) == len(group) and is_apart:
                return codes[place]
        return None

    def _named_since(
        self, one: MarkedSentence, group: list[Number], before: list[tuple[str, int, int]]
    ) -> str | None:
        """The only run named between the last number and these, and not as an object."""
        last = max((n.end for n in one.numbers if n.end <= group[0].start), default=None)
        names = {
            code
            for code, start, _ in before
            if last is not None and start >= last and not OBJECT.search(one.text[:start])
        }
        return names.pop() if len(names) == 1 else None

    def _compared_with(
        self, one: MarkedSentence, group: list[Number], before: list[tuple[str, int, int]]
    ) -> list[str]:
        """The only run named since the number before a pair, and the only other one."""
        ends = [
            other.end
            for other in one.numbers
            if other.end <= group[0].start and kind_of(other) == kind_of(group[0])
        ]
        local = [code for code, start, _ in before if start >= max(ends, default=0)]
        named = dict.fromkeys(code for code, *_ in one.runs if code.isalpha())
        rest = [code for code in named if code not in local]
        return [*local, *rest] if len(local) == len(rest) == 1 else []

    def pairs(self, one: MarkedSentence, number: Number) -> Iterator[tuple[float, tuple[int, int]]]:
        """Two runs that a difference may be of: the one called better or worse, and the other."""
        codes = [(run_at(code), start, end) for code, start, end in one.runs if code.isalpha()]
        before = [run for run, start, _ in codes if start < number.start]
        objects = [run for run, start, _ in codes if OBJECT.search(one.text[:start])]
        later = [run for run, start, _ in codes if start >= number.end and run in objects]
        earlier = [run for run in before if run in objects]
        subjects = [run for run in before if run not in objects]
        moved = re.match(
            r"\s*(?:points?\s*)?(?:from|between)\s*⟦(\w)⟧\s*(?:to|and)\s*⟦(\w)⟧",
            one.text[number.end :],
        )
        if moved:
            yield -2.0, (run_at(moved[2]), run_at(moved[1]))
        last = max((end for _, start, end in codes if start < number.start), default=0)
        is_by = re.fullmatch(r"\s*by\s*", one.text[last : number.start]) is not None
        if is_by and subjects and earlier and before[-1] != subjects[0]:
            yield -1.0, (subjects[0], before[-1])
        if later:
            others = [*subjects, *map(run_at, filter(str.isalpha, [self.last_run]))]
            for subject in [run for run in others if run != later[0]][:1]:
                yield 0.0, (subject, later[0])
        if earlier and subjects and subjects[-1] != earlier[-1]:
            yield 0.5, (subjects[-1], earlier[-1])
        both = list(dict.fromkeys(run for run, *_ in codes))
        if len(both) == 1 and len(self.names) == 2:
            both.append(1 - both[0])
        if len(both) == 2:
            is_turned = both[0] in objects and OBJECT.search(one.text[: codes[0][1]])
            yield 2.0, (both[1], both[0]) if is_turned else (both[0], both[1])

    def sign(self, one: MarkedSentence, number: Number) -> int:
        """Whether the words around a difference call the first run better or worse."""
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

    def _runs_of(self, one: MarkedSentence, code: str) -> tuple[int, ...]:
        if code == "*":
            named = sorted({name for name, *_ in one.runs if name.isalpha()})
            return tuple(map(run_at, named)) if len(named) > 1 else tuple(range(len(self.names)))
        return tuple(run_at(part) for part in code.split("+") if part.isalpha())
