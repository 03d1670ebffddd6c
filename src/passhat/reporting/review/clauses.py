"""The clauses of a sentence: the run and the metric that every number belongs to."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from passhat.reporting.review import statements as words
from passhat.reporting.review.grammar import Reader, Value
from passhat.reporting.review.roles import UNCLEAR, Roles, Token, find_leftovers
from passhat.reporting.review.statements import (
    ATTEMPTS,
    TASKS,
    Context,
    Difference,
    Place,
    Share,
    Statement,
    Unread,
)

__all__ = ["parse_sentences"]


# It is about the run of the sentence before.
_PRONOUN = re.compile(
    r"^(?!.*⟦r[^⟦]*\b(?:it|its)\b).*?\b(?:it|its|that is|that's)\b", re.IGNORECASE
)


def parse_sentences(
    text: str, names: Sequence[Sequence[str]]
) -> Iterator[tuple[str, tuple[Statement, ...]]]:
    """Every sentence of a text with its statements; ``names`` are the words for each run."""
    text = text.replace("⟦", "[").replace("⟧", "]")  # the brackets of tokens
    text = re.sub(r"\b(vs|e\.g|i\.e|approx|resp|cf|al)\.\\?(?=\s)", r"\1", text)
    text = re.sub(r"\([^()]*\)", lambda found: found[0].replace(";", ","), text)
    total, last, context = None, None, Context()
    metrics: tuple[str, ...] = ()
    for sentence in words.SENTENCE.split(text):
        reader = Reader(names, total=total, elsewhere=metrics)
        rewritten = reader.rewrite(sentence)
        if not reader.continues:
            context = Context(last if _PRONOUN.search(rewritten) else None)
        statements, context = _parse(sentence, rewritten, reader, context)
        last = context.subject if "⟦r" in rewritten else last
        total, metrics = reader.total, (*metrics, *reader.metrics)
        yield sentence, statements


def _parse(
    sentence: str, text: str, reader: Reader, context: Context
) -> tuple[tuple[Statement, ...], Context]:
    population = (
        "new tasks"
        if re.search(
            r"\b(?:new|unseen|future|other) tasks|generali[sz]|in general", sentence, re.IGNORECASE
        )
        else "these tasks"
        if re.search(r"\bthese (?:\d+ )?tasks|\bthis (?:suite|set)\b", sentence, re.IGNORECASE)
        else ""
    )
    skipped: set[int] = set()
    statements: list[Statement] = []
    for part in words.CLAUSE.split(text):
        clause = _Clause(part, reader, context, population)
        statements += clause.statements()
        context = clause.next_context()
        if words.SUBSET.search(part):
            skipped |= {int(at) for at in re.findall(r"⟦s(\d+)⟧", part)}
    for shown in reader.p_values:
        compared = next((one for one in statements if isinstance(one, Difference)), None)
        sides = context.subject, context.other
        if None in sides and len(reader.names) == 2:
            sides = 1, 0
        if compared is None and None not in sides and shown[2] in ("", "sign", "mcnemar"):
            statements.append(Difference("a test", *sides, 0, kind="tested", p_value=shown))
        elif compared is None:
            statements.append(Unread("the p-value", "what it compares was not understood", True))
        else:
            statements[statements.index(compared)] = replace(compared, p_value=shown)
    statements += [size for at, size in enumerate(reader.sizes) if at not in skipped]
    return (*statements, *reader.unread), context


class _Clause(Roles):
    def next_context(self) -> Context:
        old = self._context
        last = list(self._metrics.values())[-1:] or [old.metric]
        return Context(
            old.subject if self._subject is None else self._subject,
            old.other if self._other is None else self._other,
            last[0],
            self._is_failing(len(self.text)),
            (*old.values, *self._spots),
        )

    def statements(self) -> Iterator[Statement]:
        """Shares first, then differences; intervals go to the number they follow."""
        shares: dict[tuple[str, int], Statement] = {}
        changes: list[tuple[int, Value]] = []
        for at in self._spots:
            value = self._reader.values[at]
            self._metrics["v", at] = self._metric("v", at)
            cut = self.text[: self._spots[at][0]]
            ahead = next((m for m in words.AHEAD_ON.finditer(cut) if m.end() == len(cut)), None)
            if ahead and value.counted == "task" and self._compares(ahead):
                shares["v", at] = Difference(
                    f"{ahead['up'] or ahead['down'] or ahead[0].split()[0]} on {value.text}",
                    self._subject,
                    self._other,
                    self._sign(ahead),
                    kind="tasks",
                    share=value.low,
                    count=value.count,
                    unsure=self._unsure_sides(),
                )
            elif self._is_change(at) and not value.bare:
                if self._other_quantity(*self._spots[at]):
                    shares["v", at] = Unread(value.text, "it is not a share of passes")
                else:
                    changes.append((at, value))
            else:
                shares["v", at] = self._share(at, value)
        differences = dict(self._differences(changes))
        statements: dict[tuple[str, int], Statement] = {**shares, **differences}
        for spot in [token for token in self._tokens if token[0] == "i"]:
            self._attach(spot, statements)
        yield from statements.values()
        yield from find_leftovers(self.text, statements, self._reader.names, self._is_unexplained)

    def _attach(self, spot: Token, statements: dict[tuple[str, int], Statement]) -> None:
        """Give an interval to the number before it, or else to the first after it."""
        ends, error, unit = self._reader.intervals[int(spot[1])]
        kinds = "d" if unit == "points" else "vd"
        places = [
            (start, (kind, int(at)))
            for kind, at, start, _ in self._tokens
            if kind in kinds and (kind, int(at)) in statements
        ]
        before = [key for start, key in places if start < spot[2]]
        after = [key for start, key in places if start > spot[2]]
        key = before[-1] if before else after[0] if after else ("d", -1)
        statement = statements.get(key)
        if statement is None and ends and unit != "points" and self._names:
            statements["i", spot[2]] = self._bounds(spot, ends, unit)
            return
        shown = f"{ends[0]:g} to {ends[1]:g}" if ends else f"± {error:g}"
        if isinstance(statement, Share):
            decimal = statement.text.lstrip("~><=").startswith((".", "0.", "1.0"))
            scale = 1.0 if (max(map(abs, ends)) <= 1 and not unit if ends else decimal) else 0.01
            if statement.failing and ends:
                ends = (1 / scale - ends[1], 1 / scale - ends[0])
            statements[key] = replace(
                statement,
                ends=None if ends is None else (ends[0] * scale, ends[1] * scale),
                error=None if error is None else error * scale,
                spread="" if ends else unit,
            )
        elif isinstance(statement, Difference) and ends is not None:
            statements[key] = replace(statement, ends=ends)
        elif isinstance(statement, Difference) or not isinstance(statement, Unread):
            statements["i", spot[2]] = Unread(
                shown, "the number of this interval was not found", blocks=True
            )

    def _bounds(self, spot: Token, ends: tuple[float, float], unit: str) -> Statement:
        """An interval whose number the text leaves out: it holds the number, and is right."""
        scale = 1.0 if max(ends) <= 1 and not unit else 0.01
        low, high = ends[0] * scale, ends[1] * scale
        before = [token for token in self._names if token[3] <= spot[2]] or self._names
        owners = self._owners(before[-1][1])
        if owners is None:
            return Unread(f"{ends[0]:g} to {ends[1]:g}", "no source has a run of that name")
        return Share(
            f"{ends[0]:g} to {ends[1]:g}",
            low,
            high,
            scale,
            "=",
            owners,
            metric=self._any_metric(),
            ends=(low, high),
            doubt=self.doubt,
        )

    # Shares

    def _segment(self, start: int, end: int) -> str:
        """The words around a number, up to the next comma, "and" or number."""
        before = re.split(r",|;|\(|\band\b|⟦v\d+⟧", self.text[:start])[-1]
        after = re.split(r",|;|\)|\band\b|⟦v\d+⟧", self.text[end:])[0]
        return f"{before} {after}"

    def _other_quantity(self, start: int, end: int, *, wide: bool = False) -> str:
        segment = self._segment(start, end)
        if wide:
            ends = [re.split(r",|;|\band\b", part) for part in (self.text[:start], self.text[end:])]
            segment = f"{ends[0][-1]} {ends[1][0]}"
        match = words.OTHER.search(segment)
        return match[0] if match else ""

    def _is_change(self, at: int) -> bool:
        """Whether a percentage is a relative change rather than a share."""
        start, end = self._spots[at]
        before = self.text[:start]
        if words.CHANGE_AFTER.match(self.text, end) or words.CHANGE_BEFORE.search(before):
            return True
        match = re.search(r"\b(\w+)(?:\s+\S+){0,4}?\s+by\s*$", before) or re.search(
            r"\b(\w+)\s*$", before
        )
        if match is None:
            return False
        found = words.POLARITY.match(match[1])
        is_by = match[0].rstrip().endswith("by")
        if found is None or match[1].lower() == "up":
            return False
        return is_by or bool(found["rise"] or found["fall"])

    def _share(self, at: int, value: Value) -> Statement:
        start, end = self._spots[at]
        goal_before = re.split(r"⟦v\d+⟧|,", self.text[:start])[-1]
        goal_after = " ".join(self.text[end:].split()[:2])
        other = self._other_quantity(start, end)
        if words.GOAL.search(goal_before) or words.GOAL.search(goal_after):
            return Unread(value.text, "it is a goal, a threshold or a supposition, not a result")
        if words.COMPARATIVE.match(self.text, end):
            return Unread(value.text, "it is a change of something else")
        if other and "⟦m" not in self._segment(start, end):
            return Unread(value.text, f"it is a number of something else ({other.lower()})")
        is_named = re.match(r"\s*(?:are |tasks )*⟦m", self.text[end:])
        if value.bare and not is_named and words.MORE.search(self.text[:start]):
            return Unread(value.text, "it may be a change of the number before", blocks=True)
        if not self._is_linked(at, value):
            return Unread(
                value.text, "what this number is a share of was not understood", blocks=True
            )
        owners, guessed = self._owner(at)
        if owners is None:
            return Unread(value.text, "no source has a run of that name")
        metric, failing = self._metrics["v", at], self._is_failing(start, end)
        failing = (failing or metric == "tasks<n") and metric != "tasks:some"
        value = self._negated(value, start)
        unsure = doubt = ""
        # A metric in signs leaves no other reading; one that was taken for it does.
        if metric.startswith("tasks") or metric not in self._reader.metrics:
            unsure = value.unsure or next(
                (
                    word
                    for part in words.PARTS.split(self.text)
                    if re.search(rf"⟦[vdcm]|\b{TASKS}\b", part)
                    for word in words.unknown_words(part)
                ),
                "",
            )
            strange = words.unknown_words(self._part(start))
            doubt = f"{strange[0]!r} was not understood" if strange else ""
        if metric != "tasks:some" and words.AT_TIMES.search(self._part(start)):
            doubt = "it is about tasks that pass in some attempts only"
        return Share(
            value.text,
            value.low,
            value.high,
            value.step,
            value.relation,
            owners,
            guessed,
            metric,
            failing,
            doubt=self.doubt or doubt,
            unsure=unsure,
            counted=value.counted,
            total=value.total,
            count=value.count,
            others=self._other_readings(at),
            elsewhere=self._reader.elsewhere,
        )

    def _other_readings(self, at: int) -> tuple[tuple[tuple[int, ...], str], ...]:
        """With up to 4 attempts a run climbs from 46% to 80%: of one attempt, then of four."""
        named = {token[1] for token in self._names if token[1].isdigit()}
        if not self._names and self._context.subject is not None:
            named = {str(self._context.subject)}
        phrases = [one for one in self._reader.metrics if re.match(r"tasks[<^@]", one)]
        if len(named) > 1 or not phrases or not (named or self._runs == 1):
            return ()
        run = int(named.pop()) if named else 0
        pairs = [group[:2] for group in self._groups() if len(group) == 2]
        for pattern in words.FROM_TO:
            pairs += [[int(m["a"]), int(m["b"])] for m in pattern.finditer(self.text)]
        for pair in pairs:
            if at in pair:
                return (((run,), "pass^1" if at == pair[0] else phrases[-1]),)
        return ()

    def _negated(self, value: Value, start: int) -> Value:
        """Below the number that is not reached."""
        before = re.split(r"⟦[vdc]\d+⟧|[,;(]", self.text[:start])[-1]
        is_denied = any(match.end() == len(before) for match in words.NOT_REACHED.finditer(before))
        if words.NOT_BOUND.search(before) and not is_denied:
            relation = {">=": "<", "<=": ">"}.get(value.relation, "!=")
            return replace(value, relation=relation)
        if is_denied:
            return replace(value, relation="<" if value.relation in "=~>=" else ">")
        return value

    def _is_unexplained(self, match: re.Match[str]) -> bool:
        """Whether a word compares runs, and is no rise or fall of the numbers around it."""
        if not self._compares(match):
            return False
        spots = list(self._spots.items())
        before = [at for at, (_, end) in spots if end <= match.start()]
        after = [at for at, (start, _) in spots if start >= match.end()]
        if not after:
            return True
        values = self._reader.values
        pairs = [
            (old, new)
            for pattern in words.FROM_TO
            for found in pattern.finditer(self.text)
            for old, new in [(int(found["a"]), int(found["b"]))]
        ]
        earlier = before or self._context.values
        if not pairs and earlier:
            pairs = [(earlier[-1], after[0])]
        pairs = pairs or list(itertools.pairwise(after))
        sign = self._sign(match) * (-1 if self._is_failing(len(self.text)) else 1)
        return not pairs or any(
            (values[new].low - values[old].low) * sign < 0 for old, new in pairs
        )

    def _is_linked(self, at: int, value: Value) -> bool:
        """Whether the words around a number make it a share of passes or failures."""
        start, end = self._spots[at]
        before = [token for token in self._names if token[3] <= start]
        is_light = bool(before) and not words.unknown_words(self.text[before[-1][3] : start])
        is_grouped = any(at in group and len(group) > 1 for group in self._groups())
        is_grouped = is_grouped or any(
            str(at) in match.groups()
            for pattern in words.FROM_TO
            for match in pattern.finditer(self.text)
        )
        has_words = bool(words.PASS.search(self.text) or words.FAIL.search(self.text))
        has_metric = bool(self._metrics["v", at])
        is_named_after = self._name_after(end) is not None
        if not value.bare:
            return (
                has_metric
                or has_words
                or is_light
                or is_named_after
                or words.SCORED.search(self.text) is not None
                or (is_grouped and bool(self._names))
            )
        metric = self._metrics["v", at]
        if value.count is not None:
            return has_metric or has_words
        if (
            value.text.isdigit()
            and "pass" not in metric.removeprefix("tasks")
            and value.text != "100"
        ):
            return False
        beside = self.text[max(0, start - 40) : start]
        near = re.search(
            r"(?:⟦m\d+⟧|\b(?:scor\w+|accura\w+|rate|success|state-of-the-art))\s*(?:score )?(?:of|"
            r"is|was|=|:|at|to|reach\w*|hits|are|from)?\s*\(?\s*(?:⟦v\d+⟧\s*(?:to|vs|,|and)\s*)?$",
            beside,
            re.IGNORECASE,
        )
        follows = re.match(r"\s*(?:⟦i\d+⟧|⟦m\d+⟧)", self.text[end:])
        return bool(
            near or follows or is_named_after or ((is_light or is_grouped) and "." in value.text)
        )

    # Differences

    def _differences(
        self, changes: list[tuple[int, Value]]
    ) -> Iterator[tuple[tuple[str, int], Statement]]:
        """The comparisons of a clause, with the sizes that are given for them."""
        found = [
            match
            for match in words.POLARITY.finditer(self.text)
            if self._compares(match) and not words.AHEAD_ON.match(self.text, match.start())
        ]
        base = Difference(
            "", self._subject, self._other, 0, population=self._population, doubt=self.doubt
        )
        if any(token[1] == "?" for token in self._names):
            base = replace(base, doubt="no source has a run of that name")
        equal = words.EQUAL.search(self.text)
        unsettled = words.UNSETTLED.search(self.text)
        if unsettled and base.subject is not None and base.other is not None:
            yield (
                ("u", 0),
                replace(base, text=unsettled[0], kind="unsettled", metric=self._any_metric()),
            )
            found = [match for match in found if not words.UNSETTLED.search(match[0])]
            equal = None
        sized = [token for token in self._tokens if token[0] in "dc"]
        itself = self._two_metrics()
        if (
            equal
            and (self._names or itself)
            and not changes
            and not any(token[0] == "d" for token in sized)
        ):
            yield ("e", 0), replace(self._equality(equal, base), **itself)
            return
        base = replace(base, unsure=self._unsure_sides(), **itself)
        near = [one for one in found if re.search(r"⟦[rdc]", self._part(one.start()))]
        signs = {self._sign(match) for match in near or found}
        found = [one for one in found if not words.NOT_ALWAYS.search(self.text[: one.start()])]
        denied = any(words.DENIAL.search(self.text[: match.start()]) for match in found)
        if len(signs) == 1:
            base = replace(base, sign=next(iter(signs)))
        doubt = base.doubt or ("" if len(signs) == 1 and not denied else UNCLEAR)
        for kind, name, _, _ in sized:
            at = int(name)
            if kind == "d":
                yield ("d", at), self._gap(at, base, is_clear=len(signs) < 2 and not denied)
            else:
                ratio, relation, shown = self._reader.ratios[at]
                yield (
                    ("c", at),
                    replace(
                        base,
                        text=shown,
                        ratio=ratio,
                        relation=relation,
                        metric=base.metric or self._metric("c", at) or self._any_metric(),
                        failing=self._is_failing(len(self.text)),
                    ),
                )
        is_relative = bool(re.search(r"\brelative", self.text))
        for at, value in changes:
            yield (
                ("v", at),
                replace(
                    base,
                    text=value.text,
                    percent=100 * value.low,
                    step=100 * value.step,
                    relation=value.relation,
                    metric=self._metrics["v", at],
                    doubt=doubt,
                    is_relative=is_relative,
                    failing=self._is_failing(len(self.text)),
                ),
            )
        place = self._place()
        if place is not None:
            yield ("w", 0), place
        elif found and not sized and not changes:
            yield from self._direction(found, base, denied=denied)

    def _two_metrics(self) -> dict[str, Any]:
        """Both metrics where a run is compared with itself: the gap between pass@8 and pass^8."""
        named = {token[1] for token in self._names} or {"0"} & set("0" * (self._runs == 1))
        metrics = list(dict.fromkeys(self._word(one) for one in self._tokens if one[0] == "m"))
        between = r"(?:⟦c\d+⟧|\b(?:than|over|vs|against|from|below|above|to|and|or|exceed\w*)\b)"
        instead = r"\b(?:instead of|rather than|minus|against|its|their)\s*"
        pairs = rf"⟦m\d+⟧(?:[^⟦]|⟦d\d+⟧)*{between}[^⟦]*⟦m\d+⟧|⟦m\d+⟧(?:(?!⟦[mv]).)*?{instead}⟦m\d+⟧"
        is_gap = len(metrics) == len(self._spots) == 2 and words.GAP_OF.search(self.text)
        if not is_gap and re.search(pairs, self.text) is None:
            is_implied = re.search(r"\b(?:when|if|once|instead|rather)\b", self.text)
            if self._runs == 2 or not is_implied or metrics in ([], ["pass^1"], ["pass@1"]):
                return {}
            metrics = [*metrics, "pass^1"]
        if len(metrics) != 2 or len(named) != 1 or not (run := named.pop()).isdigit():
            return {}
        kind = "ordered" if words.METRICS_IN_ORDER.search(self.text) else "better"
        sides = {"metric": metrics[0], "against": metrics[1]}
        return {"subject": int(run), "kind": kind, "doubt": "", **sides}

    def _unsure_sides(self) -> str:
        """Why subject and object may be the other way round."""
        if not self._names and not self._explicit:
            return "the text names no run"
        for part in words.PARTS.split(self.text):
            strange = words.unknown_words(part) if re.search(r"⟦[vdcr]", part) else []
            if strange:
                return f"{strange[0]!r} was not understood"
        alone = len(self._names) == 1 and self._context.subject is None
        if alone and re.search(rf"\bfor (?:the )?{words.NAME}", re.sub(r"\s+", " ", self.text)):
            return "the text names one run only"
        return ""

    def _place(self) -> Place | None:
        """The place of the only run of a clause among three or more."""
        runs = {token[1] for token in self._names if token[1] != "*"}
        if self._runs < 3 or len(runs) != 1 or not next(iter(runs)).isdigit():
            return None
        for place, pattern in words.PLACES:
            match = re.search(rf"(?<![\w-])(?:{pattern})(?![\w-])", self.text, re.IGNORECASE)
            if match and not words.DENIAL.search(self.text[: match.start()]):
                named = dict.fromkeys(self._reader.metrics)
                metric = self._any_metric() or (next(iter(named)) if len(named) == 1 else "")
                return Place(match[0], int(next(iter(runs))), place, metric)
        return None

    def _equality(self, equal: re.Match[str], base: Difference) -> Difference:
        is_denied = not equal[0].lower().startswith(("no ", "do")) and bool(
            words.DENIAL.search(self.text[: equal.start()])
        )
        kind = "different" if is_denied else "equal"
        return replace(base, text=equal[0], kind=kind, metric=self._any_metric())

    def _gap(self, at: int, base: Difference, *, is_clear: bool) -> Difference:
        """A difference in points; its direction is that of the words, or else of its sign."""
        size, step, relation, shown, counted = self._reader.gaps[at]
        sign = base.sign
        beside = re.search(
            rf"⟦d{at}⟧ (less|fewer|more)\b( (?:{TASKS}|{ATTEMPTS}))?( than)?", self.text
        )
        if beside and (beside[2] or beside[3]):
            sign = 1 if beside[1] == "more" else -1
            sign *= -1 if self._is_failing(len(self.text)) else 1
        elif not sign and is_clear:
            is_plus = re.search(rf"\+ ?⟦d{at}⟧", self.text)
            sign = 1 if is_plus else -1 if size < 0 else 0
        is_size = words.GAP_NOUN.search(self.text) or relation == "<="
        is_clear = is_clear and "deviation" not in self.text
        is_clear = (is_clear and bool(sign or is_size) and not beside) or bool(
            beside and (beside[2] or beside[3])
        )
        return replace(
            base,
            text=shown,
            points=abs(size),
            counted=counted,
            step=step,
            relation=relation,
            sign=sign,
            metric=base.metric if base.against else self._metric("d", at),
            doubt=base.doubt or ("" if is_clear else UNCLEAR),
        )

    def _direction(
        self, found: list[re.Match[str]], base: Difference, *, denied: bool
    ) -> Iterator[tuple[tuple[str, int], Statement]]:
        """A comparison without a size."""
        is_steady = any(match["up"] or match["down"] for match in found)
        if base.against and not is_steady:  # a rise from one metric to the other
            return
        if not (is_steady or self._explicit or base.against):
            return
        if not self._names and self._context.subject is None:
            return
        if not base.sign:
            yield ("w", 0), Unread(found[0][0], UNCLEAR, blocks=True)
            return
        # "Higher" beside the numbers of both sides describes them, and claims no more.
        is_trend = any(pattern.search(self.text) for pattern in words.FROM_TO)
        describes = len(self._spots) > 1 and all(
            "followed by" in self.text
            or words.SCALAR.search(one[0])
            or (is_trend and one[0].lower() in ("up", "down"))
            for one in found
        )
        kind = "denied" if denied else "ranked" if describes and not self._population else "better"
        metric = base.metric if base.against else self._any_metric()
        yield ("w", 0), replace(base, text=found[0][0], kind=kind, metric=metric)

    def _any_metric(self) -> str:
        named = [self._word(token) for token in self._tokens if token[0] == "m"]
        is_rate = words.RATE.search(self.text) is not None
        return named[0] if named else self._context.metric or ("pass^1" if is_rate else "")

    def _compares(self, match: re.Match[str]) -> bool:
        """Whether a word such as "higher" compares runs, rather than costs or goals."""
        word, text = match[0].lower(), self.text
        following = " ".join(text[match.end() :].split()[:4])
        is_level = re.match(r"(?:back |only |just )?to (?:only |just )?⟦v", following)
        phrases = any(one not in ("pass@1", "pass^1") for one in self._reader.metrics)
        if is_level and phrases and not re.search(r"\bfrom\b", text):
            return False  # of one run, from its single attempts
        if word in ("cost", "costs", "up", "down", "best", "worst", "top"):
            if word.startswith("cost"):
                return "⟦d" in following
            if word in ("up", "down") and not re.match(r"\s*(?:from|by|⟦)", text[match.end() :]):
                return bool(re.search(r"\b(?:went|goes|going|moves?) $", text[: match.start()]))
        if word == "best" and re.match(
            r"\s*(?:of|run|seed|prompt|checkpoint|result)", text[match.end() :]
        ):
            return False
        if words.GOAL.search(" ".join(following.split()[:3])):
            return False
        is_other = self._other_quantity(match.start(), match.end(), wide=True)
        return not is_other or "⟦d" in following

    def _sign(self, match: re.Match[str]) -> int:
        sign = 1 if match["up"] or match["rise"] else -1
        is_scalar = bool(match["rise"] or match["fall"] or words.SCALAR.search(match[0]))
        return -sign if is_scalar and words.FAIL.search(self.text) else sign
