"""The clauses of a sentence: the run and the metric that every number belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from passhat.reporting.review import statements as words
from passhat.reporting.review.grammar import Reader, Value
from passhat.reporting.review.statements import Context, Difference, Share, Statement, Unread

__all__ = ["parse_sentences"]

_Token = tuple[str, str, int, int]
"""Kind, number, and the place in the clause."""
_UNCLEAR = "which side is ahead was not understood"


def parse_sentences(text: str, names: Sequence[Sequence[str]]) -> Iterator[tuple[Statement, ...]]:
    """The statements of every sentence of a text; ``names`` are the words for each run."""
    text = re.sub(r"\b(vs|e\.g|i\.e|approx|resp|cf|al)\.\\?(?=\s)", r"\1", text)
    for sentence in words.SENTENCE.split(text):
        statements = tuple(_parse(sentence, names))
        if statements:
            yield statements


def _parse(sentence: str, names: Sequence[Sequence[str]]) -> Iterator[Statement]:
    reader = Reader(names)
    text = reader.rewrite(sentence)
    population = (
        "new tasks"
        if re.search(
            r"\b(?:new|unseen|future|other) tasks|generali[sz]|in general", sentence, re.IGNORECASE
        )
        else "these tasks"
        if re.search(r"\bthese (?:\d+ )?tasks|\bthis (?:suite|set)\b", sentence, re.IGNORECASE)
        else ""
    )
    context = Context()
    skipped: set[int] = set()
    for part in words.CLAUSE.split(text):
        clause = _Clause(part, reader, context, population)
        yield from clause.statements()
        context = clause.next_context()
        if clause.doubt:
            skipped |= {int(at) for at in re.findall(r"⟦s(\d+)⟧", part)}
    yield from (size for at, size in enumerate(reader.sizes) if at not in skipped)
    yield from reader.unread


class _Clause:
    def __init__(self, text: str, reader: Reader, context: Context, population: str) -> None:
        self.text = text
        self._reader = reader
        self._context = context
        self._population = population
        self._runs = len(reader.names)
        self._tokens = [
            (match[1], match[2], match.start(), match.end()) for match in words.TOKEN.finditer(text)
        ]
        self._names = [token for token in self._tokens if token[0] == "r"]
        self._spots = {
            int(at): (start, end) for kind, at, start, end in self._tokens if kind == "v"
        }
        self.doubt = (
            "it is about a part of the tasks"
            if words.SUBSET.search(text)
            else "it is about single tasks"
            if words.SINGLE_TASK.search(text)
            else ""
        )
        self._metrics: dict[tuple[str, int], str] = {}
        self._subject, self._other, self._explicit = self._roles()

    def next_context(self) -> Context:
        old = self._context
        last = list(self._metrics.values())[-1:] or [old.metric]
        return Context(
            old.subject if self._subject is None else self._subject,
            old.other if self._other is None else self._other,
            last[0],
            self._is_failing(len(self.text)),
        )

    def statements(self) -> Iterator[Statement]:
        """Shares first, then differences; intervals go to the number they follow."""
        shares: dict[tuple[str, int], Statement] = {}
        changes: list[tuple[int, Value]] = []
        for at in self._spots:
            value = self._reader.values[at]
            self._metrics["v", at] = self._metric("v", at)
            if self._is_change(at) and not value.bare:
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

    def _attach(self, spot: _Token, statements: dict[tuple[str, int], Statement]) -> None:
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
        shown = f"{ends[0]:g} to {ends[1]:g}" if ends else f"± {error:g}"
        if isinstance(statement, Share):
            decimal = statement.text.lstrip("~><=").startswith((".", "0.", "1.0"))
            scale = 1.0 if (max(map(abs, ends)) <= 1 and not unit if ends else decimal) else 0.01
            if statement.failing and ends:
                ends = (1 / scale - ends[1], 1 / scale - ends[0])
            statements[key] = replace(
                statement,
                ends=None if ends is None else (ends[0] * scale, ends[1] * scale),
                error=None if error is None else error * scale * (-1 if unit == "se" else 1),
            )
        elif isinstance(statement, Difference) and ends is not None:
            statements[key] = replace(statement, ends=ends)
        elif isinstance(statement, Difference) or not isinstance(statement, Unread):
            statements["i", spot[2]] = Unread(
                shown, "the number of this interval was not found", blocks=True
            )

    # Runs

    def _roles(self) -> tuple[int | None, int | None, bool]:
        """Subject of a comparison, the run it is compared with, whether both are named."""
        text, runs = self.text, self._runs
        for pattern in (
            rf"\bfrom\b[^,;]*?{words.NAME}[^,;]*?\bto\b[^,;]*?{words.NAME}",
            rf"\b(?:replac|swap|exchang)\w+ {words.NAME} (?:with|by|for) {words.NAME}",
        ):
            match = re.search(pattern, re.sub(r"\s+", " ", text), re.IGNORECASE)
            if match and match[1].isdigit() and match[2].isdigit() and match[1] != match[2]:
                return int(match[2]), int(match[1]), True
        match = re.search(rf"\b(?:\w+ed|beaten) by\s+(?:the )?{words.NAME}", text, re.IGNORECASE)
        actor = match[1] if match and words.POLARITY.search(match[0]) else None
        objects: list[int] = []
        subjects: list[int] = []
        for _, at, start, _ in self._names:
            if at == "*":
                continue
            run = -1 if at == "?" else int(at)
            is_object = words.OBJECT.search(text[:start]) or re.search(
                r"\bfor\s+(?:the )?$", text[:start]
            )
            (objects if is_object and str(run) != actor else subjects).append(run)
        if actor is not None and actor.isdigit():
            rest = [run for run in (*subjects, *objects) if run != int(actor)]
            return int(actor), rest[0] if rest else self._opposite(int(actor)), bool(rest)
        subject = subjects[0] if subjects else None
        other = next((run for run in (*objects, *subjects[1:]) if run != subject), None)
        explicit = subject is not None and other is not None
        if subject is None and other is not None:
            subject = (
                self._context.subject
                if self._context.subject not in (None, other)
                else self._opposite(other)
            )
        elif other is None and subject is not None:
            carried = (
                self._context.other if self._context.other != subject else self._context.subject
            )
            other = carried if carried not in (None, subject) else self._opposite(subject)
        elif subject is None:
            subject, other = self._context.subject, self._context.other
            explicit = subject is not None and other is not None
        if subject is None and runs == 2:
            subject, other = 1, 0  # the sources are given baseline first
        return subject, other, explicit

    def _opposite(self, run: int) -> int | None:
        return 1 - run if self._runs == 2 and run in (0, 1) else None

    def _owner(self, at: int) -> tuple[tuple[int, ...] | None, bool]:
        """The runs of a value (None: no source has it), and whether they are inferred."""
        start, end = self._spots[at]
        bound = self._name_after(end)
        if bound:
            return self._owners(bound), False
        pair = self._moved(at)
        if pair is not None:
            return pair
        grouped = self._grouped(at)
        if grouped is not None:
            return grouped
        before = [token for token in self._names if token[3] <= start]
        if before:
            _, name, name_start, name_end = before[-1]
            gap = self.text[name_end:start]
            is_object = words.OBJECT.search(self.text[:name_start])
            if is_object and not re.fullmatch(r"\s*[(\[:]?\s*(?:⟦m\d+⟧\s*[:=]?\s*)?", gap):
                return self._as_owners(self._subject), True
            return self._owners(name), False
        later = {token[1] for token in self._names if token[2] >= end}
        if self._context.subject is not None:
            return self._as_owners(self._context.subject), True
        if len(later) == 1:
            (name,) = later
            token = next(token for token in self._names if token[1] == name)
            if words.OBJECT.search(self.text[: token[2]]) and name.isdigit():
                return self._as_owners(self._opposite(int(name))), True
            return self._owners(name), True
        return (), True

    def _owners(self, name: str) -> tuple[int, ...] | None:
        return None if name == "?" else tuple(range(self._runs)) if name == "*" else (int(name),)

    def _as_owners(self, run: int | None) -> tuple[int, ...] | None:
        return () if run is None else None if run < 0 else (run,)

    def _name_after(self, end: int) -> str | None:
        match = words.FOR.match(self.text, end)
        if match is None or re.search(r"\b(?:and|than|over|but)\b", match[0]):
            return None
        return None if words.OWN_VALUE.match(self.text, match.end()) else match[1] or match[2]

    def _moved(self, at: int) -> tuple[tuple[int, ...] | None, bool] | None:
        """From X to Y: the first is the run compared with, the second the subject."""
        for pattern in words.FROM_TO:
            for match in pattern.finditer(self.text):
                old, new = int(match["a"]), int(match["b"])
                if at not in (old, new):
                    continue
                named = [
                    name
                    for token in (old, new)
                    if (name := self._name_after(self._spots[token][1]))
                ]
                if self._metric("v", old) != self._metric("v", new):
                    return self._as_owners(self._subject) if self._names else (), not self._names
                if len(named) == 1 and named[0].isdigit():
                    return self._as_owners(self._opposite(int(named[0]))), True
                run = self._other if at == old else self._subject
                return self._as_owners(run), not self._explicit
        return None

    def _groups(self) -> Iterator[list[int]]:
        """Values that follow each other with nothing but "vs", "and" or a comma between them."""
        group: list[int] = []
        for at, (start, _) in self._spots.items():
            if group and not words.BETWEEN_VALUES.fullmatch(
                self.text[self._spots[group[-1]][1] : start]
            ):
                yield group
                group = []
            group.append(at)
        yield group

    def _grouped(self, at: int) -> tuple[tuple[int, ...] | None, bool] | None:
        for group in self._groups():
            if at not in group or len(group) < 2 or group[0] != min(self._spots):
                continue
            start = self._spots[group[0]][0]
            names = list(dict.fromkeys(token[1] for token in self._names if token[2] < start))
            gap = self.text[self._spots[group[0]][1] : self._spots[group[1]][0]]
            if len(names) == len(group) and len({self._metric("v", one) for one in group}) == 1:
                return self._owners(names[group.index(at)]), False
            if len(names) == 1 and re.search(r"vs|against|→|->", gap) and names[0].isdigit():
                run = int(names[0])
                return self._as_owners(run if at == group[0] else self._opposite(run)), at != group[
                    0
                ]
        return None

    # Metrics

    def _metric(self, kind: str, at: int) -> str:
        """The metric of a number: beside it, before it, after it, or that of the number before."""
        known = self._metrics.get((kind, at))
        if known is not None:
            return known
        numbers = [token for token in self._tokens if token[0] in "vdc"]
        place = next(place for place, token in enumerate(numbers) if token[:2] == (kind, str(at)))
        start, end = numbers[place][2:]
        last = numbers[place - 1][3] if place else 0
        following = numbers[place + 1][2] if place + 1 < len(numbers) else len(self.text)
        metrics = [token for token in self._tokens if token[0] == "m"]
        after = [token for token in metrics if end <= token[2] < following]
        before = [token for token in metrics if last <= token[2] < start]
        for token in after[:1]:
            gap, rest = self.text[end : token[2]], self.text[token[3] : following]
            beside = re.fullmatch(r"[\s)]*(?:in|on|of|for|at|by|the|a|as|tasks|single)?[\s(]*", gap)
            if beside and not (
                following < len(self.text) and re.fullmatch(r"\s*(?:=|:|is|of|at)?\s*", rest)
            ):
                return self._word(token)
        respective = self._respective(kind, at, metrics)
        if respective:
            return respective
        own = [token for token in before if not self._is_of_last(token, last)]
        if own:
            return self._word(own[-1])
        for token in after[:1]:
            gap = self.text[end : token[2]]
            is_last = following == len(self.text)
            if not re.search(r",|\band\b|:", gap) or (is_last and ":" not in gap):
                return self._word(token)
        counts = kind == "v" and self._reader.values[at].counted == "attempt"
        if counts or (kind == "v" and words.ATTEMPTS_AFTER.match(self.text, end)):
            return "pass^1"
        return self._taken_metric(numbers[:place], metrics)

    def _taken_metric(self, numbers: list[_Token], metrics: list[_Token]) -> str:
        """The metric of a number that has none of its own: of the one before, or of the clause."""
        carried = self._metric(numbers[-1][0], int(numbers[-1][1])) if numbers else ""
        if carried or self._context.metric:
            return carried or self._context.metric
        if metrics:
            return self._word(metrics[0])
        return "pass^1" if words.RATE.search(self.text) else ""

    def _is_of_last(self, token: _Token, last: int) -> bool:
        """Whether a metric stands right after the number before, and belongs to that."""
        return (
            bool(last)
            and re.fullmatch(r"[\s)]*(?:in|on|of|at)?\s*", self.text[last : token[2]]) is not None
        )

    def _respective(self, kind: str, at: int, metrics: list[_Token]) -> str:
        for group in self._groups() if kind == "v" else ():
            if at in group and len(group) > 1 and group[0] == min(self._spots):
                start = self._spots[group[0]][0]
                named = [self._word(token) for token in metrics if token[2] < start]
                if len(named) == len(group):
                    return named[group.index(at)]
        return ""

    def _word(self, token: _Token) -> str:
        return self._reader.metrics[int(token[1])]

    def _is_failing(self, start: int, end: int | None = None) -> bool:
        """Whether a number counts failures, by the last word before it or the next after it."""
        before = [
            (match.end(), is_fail)
            for pattern, is_fail in ((words.FAIL, True), (words.PASS, False))
            for match in pattern.finditer(self.text, 0, start)
        ]
        if before:
            return max(before)[1]
        if end is not None:
            following = re.search(r"⟦v|,", self.text[end:])
            stop = end + following.start() if following else len(self.text)
            fails, passes = (
                words.FAIL.search(self.text, end, stop),
                words.PASS.search(self.text, end, stop),
            )
            if fails or passes:
                return passes is None or (fails is not None and fails.start() < passes.start())
        return self._context.failing and "⟦m" not in self.text

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
        if words.CHANGE_AFTER.match(self.text, end):
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
        goal_before = re.split(r"⟦v\d+⟧", self.text[:start])[-1]
        goal_after = " ".join(self.text[end:].split()[:2])
        other = self._other_quantity(start, end)
        if words.GOAL.search(goal_before) or words.GOAL.search(goal_after):
            return Unread(value.text, "it is a goal, a threshold or a supposition, not a result")
        if words.COMPARATIVE.match(self.text, end):
            return Unread(value.text, "it is a change of something else")
        if other and "⟦m" not in self._segment(start, end):
            return Unread(value.text, f"it is a number of something else ({other.lower()})")
        if not self._is_linked(at, value):
            return Unread(
                value.text, "what this number is a share of was not understood", blocks=True
            )
        owners, guessed = self._owner(at)
        if owners is None:
            return Unread(value.text, "no source has a run of that name")
        metric, failing = self._metrics["v", at], self._is_failing(start, end)
        if failing and not metric and re.search(r"\bnever\b", self.text):
            metric = "tasks^n"
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
            doubt=self.doubt,
            counted=value.counted,
        )

    def _is_linked(self, at: int, value: Value) -> bool:
        """Whether the words around a number make it a share of passes or failures."""
        start, end = self._spots[at]
        before = [token for token in self._names if token[3] <= start]
        is_light = (
            bool(before) and words.LIGHT.fullmatch(self.text[before[-1][3] : start]) is not None
        )
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
                or (is_grouped and bool(self._names))
            )
        if value.text.isdigit() and not has_metric and value.text != "100":
            return False
        beside = self.text[max(0, start - 40) : start]
        near = re.search(
            r"(?:⟦m\d+⟧|\b(?:scor\w+|accura\w+|rate|success|"
            r"state-of-the-art))\s*(?:score )?(?:of|is|was|=|:|at|to|"
            r"reach\w*|hits|are|from)?\s*(?:⟦v\d+⟧\s*(?:to|vs|,|and)\s*)?$",
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
        found = [match for match in words.POLARITY.finditer(self.text) if self._compares(match)]
        base = Difference(
            "", self._subject, self._other, 0, population=self._population, doubt=self.doubt
        )
        if any(token[1] == "?" for token in self._names):
            base = replace(base, doubt="no source has a run of that name")
        equal = words.EQUAL.search(self.text)
        sized = [token for token in self._tokens if token[0] in "dc"]
        if equal and self._names and not changes and not any(token[0] == "d" for token in sized):
            yield ("e", 0), self._equality(equal, base)
            return
        signs = {self._sign(match) for match in found}
        denied = any(words.DENIAL.search(self.text[: match.start()]) for match in found)
        if len(signs) == 1:
            base = replace(base, sign=next(iter(signs)))
        doubt = base.doubt or ("" if len(signs) == 1 and not denied else _UNCLEAR)
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
                        metric=self._any_metric(),
                        failing=self._is_failing(len(self.text)),
                    ),
                )
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
                    failing=self._is_failing(len(self.text)),
                ),
            )
        if found and not sized and not changes:
            yield from self._direction(found, base, denied=denied)

    def _equality(self, equal: re.Match[str], base: Difference) -> Difference:
        is_denied = not equal[0].lower().startswith(("no ", "do")) and bool(
            words.DENIAL.search(self.text[: equal.start()])
        )
        kind = "different" if is_denied else "equal"
        return replace(base, text=equal[0], kind=kind, metric=self._any_metric())

    def _gap(self, at: int, base: Difference, *, is_clear: bool) -> Difference:
        """A difference in points; its direction is that of the words, or else of its sign."""
        size, step, relation, shown = self._reader.gaps[at]
        sign = base.sign
        if not sign and is_clear:
            is_plus = re.search(rf"\+ ?⟦d{at}⟧", self.text)
            sign = 1 if is_plus else -1 if size < 0 else 0
        is_clear = is_clear and bool(sign or words.GAP_NOUN.search(self.text))
        if re.search(rf"⟦d{at}⟧ (?:less|fewer|more)\b", self.text):
            is_clear = False
        return replace(
            base,
            text=shown,
            points=abs(size),
            step=step,
            relation=relation,
            sign=sign,
            metric=self._metric("d", at),
            doubt=base.doubt or ("" if is_clear else _UNCLEAR),
        )

    def _direction(
        self, found: list[re.Match[str]], base: Difference, *, denied: bool
    ) -> Iterator[tuple[tuple[str, int], Statement]]:
        """A comparison without a size."""
        is_steady = any(match["up"] or match["down"] for match in found)
        if not (is_steady or self._explicit):
            return
        if not self._names and self._context.subject is None:
            return
        if not base.sign:
            yield ("w", 0), Unread(found[0][0], _UNCLEAR, blocks=True)
            return
        # "Higher" beside the numbers of both sides describes them, and claims no more.
        describes = len(self._spots) > 1 and all(words.SCALAR.search(match[0]) for match in found)
        kind = "denied" if denied else "ranked" if describes and not self._population else "better"
        yield ("w", 0), replace(base, text=found[0][0], kind=kind, metric=self._any_metric())

    def _any_metric(self) -> str:
        named = [self._word(token) for token in self._tokens if token[0] == "m"]
        return named[0] if named else self._context.metric

    def _compares(self, match: re.Match[str]) -> bool:
        """Whether a word such as "higher" compares runs, rather than costs or goals."""
        word, text = match[0].lower(), self.text
        following = " ".join(text[match.end() :].split()[:4])
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
        return not self._other_quantity(match.start(), match.end(), wide=True) or "⟦d" in following

    def _sign(self, match: re.Match[str]) -> int:
        sign = 1 if match["up"] or match["rise"] else -1
        is_scalar = bool(match["rise"] or match["fall"] or words.SCALAR.search(match[0]))
        return -sign if is_scalar and words.FAIL.search(self.text) else sign
