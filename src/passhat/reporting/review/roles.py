"""The run and metric of every number of a clause, how often tasks pass, and what is left."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from passhat.reporting.review import statements as words
from passhat.reporting.review.grammar import Reader
from passhat.reporting.review.statements import (
    Context,
    Difference,
    Place,
    Share,
    Statement,
    Unread,
)

__all__ = [
    "BOUND",
    "EXACT_TIMES",
    "FILLER",
    "LEVELS",
    "UNCLEAR",
    "WHOLE",
    "Roles",
    "Token",
    "find_leftovers",
    "find_ranking",
    "parse_levels",
    "parse_times",
    "passes_between",
    "relation_of",
]

Token = tuple[str, str, int, int]
"""Kind, number, and the place in the clause."""


class Roles:
    """A clause with tokens: its subject and object, and the owner and metric of a number."""

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

    def _part(self, start: int) -> str:
        first, last = part_at(self.text, start)
        return self.text[first:last]

    def _roles(self) -> tuple[int | None, int | None, bool]:
        """Subject of a comparison, the run it is compared with, whether both are named."""
        text, runs = self.text, self._runs
        moved = self._movement()
        if moved is not None:
            return *moved, True
        match = re.search(rf"\b(?:\w+ed|beaten) by\s+(?:the )?{words.NAME}", text, re.IGNORECASE)
        actor = match[1] if match and words.POLARITY.search(match[0]) else None
        objects: list[int] = []
        subjects: list[int] = []
        served: list[int] = []
        for _, at, start, _ in self._names:
            if at == "*" or "+" in at:
                continue
            run = -1 if at == "?" else int(at)
            is_object = words.OBJECT.search(text[:start]) is not None
            is_served = re.search(r"\bfor\s+(?:the )?$", text[:start]) is not None
            is_actor = str(run) == actor
            (
                subjects
                if is_actor
                else objects
                if is_object
                else served
                if is_served
                else subjects
            ).append(run)
        (objects if subjects else subjects).extend(served)
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

    def _movement(self) -> tuple[int, int] | None:
        """The runs that a change leads to and comes from: from A to B."""
        text = self.text
        for pattern in (
            rf"\bfrom\b[^,;]*?{words.NAME}[^,;]*?\bto\b[^,;]*?{words.NAME}",
            rf"{words.NAME}\s*(?:to|→|->)\s*{words.NAME}",
            rf"\bfrom\b.*\bbetween {words.NAME} and {words.NAME}",
            rf"{words.NAME} (?:is|was) (?:replac|swapp|exchang)\w+ (?:with|by|for) {words.NAME}",
            rf"\b(?:replac|swap|exchang)\w+ {words.NAME} (?:with|by|for) {words.NAME}",
        ):
            match = re.search(pattern, re.sub(r"\s+", " ", text), re.IGNORECASE)
            if match and match[1].isdigit() and match[2].isdigit() and match[1] != match[2]:
                return int(match[2]), int(match[1])
        # After training, it rose from 44% to 81%: the run named is where it began.
        if (
            self._runs == 2
            and {token[1] for token in self._names} == {"0"}
            and re.search(
                r"^\W*(?:after|with|by|through|via|following)\b[^⟦]*,", text, re.IGNORECASE
            )
            and any(pattern.search(text) for pattern in words.FROM_TO)
        ):
            return 1, 0
        return None

    def _opposite(self, run: int) -> int | None:
        return 1 - run if self._runs == 2 and run in (0, 1) else None

    def _owner(self, at: int) -> tuple[tuple[int, ...] | None, bool]:
        """The runs of a value (None: no source has it), and whether they are inferred."""
        start, end = self._spots[at]
        group = self._list_around(at)
        behind = [one for one in self._names if one[2] >= self._spots[group[-1]][1]]
        if len(group) > 1 and len(group) == len(behind) == len(self._names) and at in group:
            return self._owners(behind[group.index(at)][1]), False
        # The name may stand behind the last of a list: 44.1 and 75.0 for B.
        last = ((self._earlier_metrics(at) and self._list_around(at)) or [at])[-1]
        bound = self._name_after(self._spots[last][1])
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
            return self._as_owners(self._context.subject), not self._reader.continues
        if len(later) == 1:
            (name,) = later
            token = next(token for token in self._names if token[1] == name)
            if words.OBJECT.search(self.text[: token[2]]) and name.isdigit():
                return self._as_owners(self._opposite(int(name))), True
            return self._owners(name), len(self._names) > 1
        return (), True

    def _owners(self, name: str) -> tuple[int, ...] | None:
        if name == "?":
            return None
        return tuple(range(self._runs)) if name == "*" else tuple(map(int, name.split("+")))

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
                second = self._other if run == self._subject else self._opposite(run)
                return self._as_owners(run if at == group[0] else second), at != group[0]
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
            beside = re.fullmatch(
                r"[\s)]*(?:in|on|of|for|at|by|the|a|as|tasks|single|are|were)?[\s(]*", gap
            )
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
        if place + 1 < len(numbers) and re.search(r",(?!.*⟦r)", self.text[end:following]):
            # Another number of the same run: 80% of attempts, 57% when all 8 must pass.
            metrics = [
                token
                for token in metrics
                if token[2] < following or not self._word(token).startswith("tasks")
            ]
        return self._taken_metric(numbers[:place], metrics)

    def _taken_metric(self, numbers: list[Token], metrics: list[Token]) -> str:
        """The metric of a number that has none of its own: of the one before, or of the clause."""
        carried = self._metric(numbers[-1][0], int(numbers[-1][1])) if numbers else ""
        if carried or self._context.metric:
            return carried or self._context.metric
        if metrics:
            return self._word(metrics[0])
        return "pass^1" if words.RATE.search(self.text) else ""

    def _is_of_last(self, token: Token, last: int) -> bool:
        """Whether a metric stands right after the number before, and belongs to that."""
        return (
            bool(last)
            and re.fullmatch(
                r"[\s)]*(?:in|on|of|at|are|is|were|was)?\s*", self.text[last : token[2]]
            )
            is not None
        )

    def _list_around(self, at: int) -> list[int]:
        """The numbers that are listed together with one: 44.1 and 75.0."""
        found: list[int] = []
        for one, (start, _) in self._spots.items():
            gap = self.text[self._spots[found[-1]][1] : start] if found else ""
            if found and not re.fullmatch(r"\s*(?:,|,?\s*(?:and|or)|/)\s*", gap):
                if at in found:
                    break
                found = []
            found.append(one)
        return found

    def _earlier_metrics(self, at: int) -> list[str]:
        """The metrics of the numbers before a list that has as many numbers and no metric."""
        group = self._list_around(at)
        first, last = self._spots[group[0]][0], self._spots[group[-1]][1]
        tokens = [one for one in self._tokens if one[0] in "mv" and one[2] < first]
        metrics = [self._word(token) for token in tokens if token[0] == "m"]
        if len(group) < 2 or at not in group or re.match(r"\s*⟦m", self.text[last:]):
            return []
        is_full = len(metrics) == len(set(metrics)) == len(group) <= len(tokens) - len(metrics)
        return metrics if is_full else []

    def _respective(self, kind: str, at: int, metrics: list[Token]) -> str:
        earlier = self._earlier_metrics(at) if kind == "v" else []
        if earlier:
            return earlier[self._list_around(at).index(at)]
        for group in self._groups() if kind == "v" else ():
            if at in group and len(group) > 1 and group[0] == min(self._spots):
                start = self._spots[group[0]][0]
                named = [self._word(token) for token in metrics if token[2] < start]
                if len(named) == len(group):
                    return named[group.index(at)]
        return ""

    def _word(self, token: Token) -> str:
        return self._reader.metrics[int(token[1])]

    def _is_failing(self, start: int, end: int | None = None) -> bool:
        """Whether a number counts failures: by the nearest word of its part, or of its clause."""
        first = max((cut.end() for cut in words.PARTS.finditer(self.text, 0, start)), default=0)
        places = [(first, start), (0, start)]
        if end is not None:
            cuts = (cut.start() for cut in words.PARTS.finditer(self.text, end))
            places.insert(1, (end, min(cuts, default=len(self.text))))
            following = re.search(r"⟦v|,", self.text[end:])
            places.append((end, end + following.start() if following else len(self.text)))
        for low, high in places:
            found = [
                (match.end() if low != end else -match.start(), is_fail)
                for pattern, is_fail in ((words.FAIL, True), (words.PASS, False))
                for match in pattern.finditer(self.text, low, high)
            ]
            if found:
                return max(found)[1]
        return self._context.failing and "⟦m" not in self.text


UNCLEAR = "which side is ahead was not understood"
_NOT_READ = "what it says of the numbers was not understood"


def part_at(text: str, start: int) -> tuple[int, int]:
    """Ends of the part of a clause around a place: up to a comma, a bracket or a conjunction."""
    cuts = list(words.PARTS.finditer(text))
    return (
        max((cut.end() for cut in cuts if cut.end() <= start), default=0),
        min((cut.start() for cut in cuts if cut.start() >= start), default=len(text)),
    )


def find_leftovers(
    text: str,
    statements: Mapping[tuple[str, int], Statement],
    names: Sequence[Sequence[str]],
    is_direction: Callable[[re.Match[str]], bool],
) -> Iterator[Unread]:
    """Yield what is left of a clause with tokens; a quantity, a direction or a run blocks the rest.

    ``is_direction`` tells whether a word compares runs and no number of the clause explains it.
    """
    has_numbers = bool(re.search(r"⟦[vdc]", text))
    has_runs = re.search(rf"{words.NAME}(?:(?!⟦r).)*{words.NAME}", text) is not None
    talks = (words.POLARITY, words.EQUAL, words.PASS, words.FAIL)
    is_talk = "⟦r" in text and any(pattern.search(text) for pattern in talks)
    if not (has_numbers or has_runs or is_talk):
        return
    text = _without_other_quantities(text, statements)
    for part in words.PARTS.split(text) if has_numbers or has_runs else ():
        known = re.findall(r"[a-z]+", " ".join(itertools.chain(*names)).lower())
        strange = [word for word in words.unknown_words(part) if word.lower() not in known]
        if strange:
            yield Unread(" ".join(strange), "it was not understood")
    yield from _quantities(text, statements, is_direction)
    used = _runs_of(statements.values())
    for run in dict.fromkeys(re.findall(r"⟦r(\d+)⟧", text)):
        if int(run) not in used and (has_numbers or statements):
            yield Unread(names[int(run)][0], "what is said of it was not understood", blocks=True)


def _quantities(
    text: str,
    statements: Mapping[tuple[str, int], Statement],
    is_direction: Callable[[re.Match[str]], bool],
) -> Iterator[Unread]:
    compares, plain = any(isinstance(a, Difference | Place) for a in statements.values()), text
    for pattern in (words.HARMLESS, words.FAIL, words.NOT_REACHED, words.UNSETTLED):
        plain = pattern.sub(" ", plain)
    parts = [part for part in words.PARTS.split(plain) if "⟦" in part]
    for match in (one for part in parts for one in words.QUANTITY.finditer(part)):
        if not (compares and words.COMPARING.fullmatch(match[0])):
            yield Unread(match[0], _NOT_READ, blocks=True)
    for match in () if compares else words.POLARITY.finditer(text):
        if is_direction(match):
            yield Unread(match[0], UNCLEAR, blocks=True)


def _without_other_quantities(text: str, statements: Mapping[tuple[str, int], Statement]) -> str:
    """The clause without the parts whose numbers are costs, goals and the like."""
    for (kind, at), one in statements.items():
        spot = text.find(f"⟦{kind}{at}⟧")
        if isinstance(one, Unread) and not one.blocks and spot >= 0:
            first, last = part_at(text, spot)
            text = f"{text[:first]} {text[last:]}"
    return text


def _runs_of(statements: Iterable[Statement]) -> set[int | None]:
    runs: set[int | None] = set()
    for one in statements:
        if isinstance(one, Share):
            runs.update(one.owners)
        elif isinstance(one, Difference):
            runs.update((one.subject, one.other))
        elif isinstance(one, Place):
            runs.add(one.run)
    return runs


# How often tasks pass, and clauses in a fixed form.
_ATT, _TASK = words.ATTEMPTS, words.TASKS
BOUND = (
    r"(?:(?P<op>at least|no fewer than|no less than|at most|no more than|up to|more than|over|"
    r"fewer than|less than|under|about|roughly|around|~|>=|<=) |"
    r"(?:exactly|precisely|only|just|a mere) )*"
)
WHOLE = r"(?: of)?(?: the| its| their| our| all)*"
_OFTEN = (
    ("flawless", rf"\b(?:flawless|perfect)\w*(?: (?:over|in|on|across){WHOLE} (?P<m>\d+) "
     rf"{_ATT}\b)?"),
    ("some", rf"\b(?:in )?some(?:{WHOLE} {_ATT}\b)? but not (?:in )?(?:all|every|each)\b"
     rf"(?:{WHOLE}(?: (?P<m>\d+))? {_ATT}\b)?"),
    ("all", rf"(?<!of )\b(?:in |on |across |over |with )?(?:all|each|every)(?: single)?(?: one)?"
     rf"{WHOLE}"
     rf"(?: (?P<m>\d+))?{WHOLE} {_ATT}\b|\b(?:every|each)(?: single)? time\b|\balways\b"),
    ("any", rf"\b(?:in |on |across |with )?(?:any|even 1|even a single)(?: single)?(?: one)?"
     rf"{WHOLE}(?: (?P<m>\d+))?{WHOLE} {_ATT}\b|\bever\b|\bat all\b"),
    ("none", rf"\b(?:in|on) (?:none|no){WHOLE}(?: (?P<m>\d+))? {_ATT}\b"),
    ("", rf"\b(?:with|given|after|within|over|across|in){WHOLE} (?P<m>\d+) {_ATT}\b"),
    ("count", rf"(?:\b(?:in|on|with) )?{BOUND}\b(?:(?P<w>once|twice)|(?P<j>\d+)(?P<more> or more)?"
     rf"(?= (?:times\b|{_ATT}\b|(?:out )?of{WHOLE} \d+ {_ATT}\b))(?: {_ATT}\b)?)"
     rf"(?: (?:out of|of|in|over|across|within){WHOLE} (?P<m>\d+)(?! {_TASK})(?: {_ATT}\b)?)?"),
)  # fmt: skip
EXACT_TIMES = re.compile(
    r"\b(?:exactly|only|just|at least(?! once| 1\b)|at most|(?:no )?more than|"
    rf"(?:no )?fewer than|less than) (?:once\b|twice\b|\d+ (?:times\b|{_ATT}\b|"
    rf"(?:out )?of{WHOLE} \d+ {_ATT}\b))|\b(?:(?:miss|fail|solv|pass)\w*|\d+(?: {_TASK})?) "
    rf"(?:once|twice)\b|(?<!the |all |its |our )\b\d+ {_TASK} \d+ times\b",
    re.IGNORECASE,
)
_NOT = r"\b(?:never|not|unable to|failed to|fails to|fail to|failing to|cannot)\b"
_DID = re.compile(
    r"\b(?:(?P<fail>fail(?:s|ed|ing)?|miss(?:es|ed|ing)?|unsolved|unresolved)|"
    r"(?:pass|solv|complet|resolv|crack|finish|succe|clear|handl)\w*)\b",
    re.IGNORECASE,
)
FILLER = re.compile(
    r"(?:\b(?:the|a|an|of|in|on|at|by|for|its?|their|them|they|this|these|that|those|was|were|is|"
    r"are|be|been|has|have|had|did|do|does|could|can|out|there|which|but|and|so|even|while|with|"
    r"managed?s?|manages|able|to|remain(?:s|ed)?|left|go|went|agents?|models?|suite|benchmark|here|"
    r"logg?ed|log|recorded|racked|up|compared|versus|vs|against|whereas|runs?|produced|ha[ds]|"
    rf"unfortunately|sadly|interestingly|notably|still|then|also|{_TASK})\b|⟦r[\d+*]+⟧|[\s,.()!'’])*",
    re.IGNORECASE,
)
LEVELS = re.compile(
    rf"\b(?:with|given|in|after) (?P<k>\d+) {_ATT},? ⟦r(?P<a>\d+)⟧ (?:only |just |merely )?"
    r"(?:gets|comes|climbs|rises|is|lands|reaches|matches)(?: up| only| just| to| at)* "
    r"(?:about |roughly |only |just |exactly )?(?:where|what) ⟦r(?P<b>\d+)⟧ (?:already )?"
    r"(?:is|gets|stands|lands|was|reaches|has|does) (?:with|on|in|after) (?:only |just |a |its )?"
    rf"(?:(?P<j>\d+)|one|single|first)(?: {_ATT})?[ ,(]*(?:(?:both|⟦r\*⟧) )?(?:at |are |is )?"
    r"(?P<op>[~≈] ?|about |roughly )?(?P<v>\d+(?:\.\d+)?)\s?%",
    re.IGNORECASE,
)
_BOUNDS = {
    **dict.fromkeys(("at least", "no fewer than", "no less than", ">="), ">="),
    **dict.fromkeys(("at most", "no more than", "up to", "<="), "<="),
    **dict.fromkeys(("more than", "over"), ">"),
    **dict.fromkeys(("fewer than", "less than", "under"), "<"),
    **dict.fromkeys(("about", "roughly", "around", "~"), "~"),
}


def parse_times(
    text: str, attempts: frozenset[int]
) -> tuple[str, str, re.Match[str] | None, str] | None:
    """The rest of a clause, how often, its words, and the verb; None where unclear."""
    often: list[tuple[str, re.Match[str]]] = []
    for kind, pattern in _OFTEN:
        match = re.search(pattern, text, re.IGNORECASE)
        if match:
            often.append((kind, match))
            text = text[: match.start()] + " " + text[match.end() :]
    totals = {int(match["m"]) for _, match in often if match.groupdict().get("m")}
    kinds = [(_kind(kind, match), match) for kind, match in often if kind]
    denials = re.findall(_NOT, text, re.IGNORECASE)
    text = re.sub(_NOT, " ", text, flags=re.IGNORECASE)
    verbs = [match[0] if match["fail"] else "" for match in _DID.finditer(text)]
    if len(kinds) > 1 or not totals <= attempts or len(denials) > 1 or len(verbs) > 1:
        return None
    kind, match = kinds[0] if kinds else ("", None)
    if denials:
        is_never = denials[0].lower() == "never" or kind == "any" or "to" in denials[0]
        if kind not in ("", "any") or not is_never:
            return None
        kind = "none"
    elif verbs and verbs[0].lower().startswith("un") and not kind:
        kind = "all"
    if kind == "flawless" and verbs:
        return None
    verb = verbs[0] if verbs else "" if kind == "flawless" else "?"
    return re.sub(r"\s+", " ", _DID.sub(" ", text)), kind, match, verb


def _kind(kind: str, match: re.Match[str]) -> str:
    """The kind of a count: "at least once" is any."""
    is_any = kind == "count" and match["op"] == "at least" and (match["w"] or match["j"]) in (
        "once", "1")  # fmt: skip
    return "any" if is_any else kind


def passes_between(kind: str, often: re.Match[str] | None, n: int) -> tuple[int, int] | None:
    """The fewest and the most times, of n; None where it is not said."""
    ends = {"all": (n, n), "flawless": (n, n), "any": (1, n), "none": (0, 0), "some": (1, n - 1)}
    if kind != "count" or often is None:
        return ends.get(kind)
    count = {"once": 1, "twice": 2}.get((often["w"] or "").lower()) or int(often["j"])
    relation = relation_of(often) if not often["more"] else ">="
    low = {">=": count, ">": count + 1, "=": count}.get(relation, 0)
    high = {"<=": count, "<": count - 1, "=": count}.get(relation, n)
    return (low, high) if relation != "~" and 0 <= low <= high <= n else None


def relation_of(match: re.Match[str]) -> str:
    return _BOUNDS.get((match["op"] or "").lower(), "=")


def parse_levels(match: re.Match[str]) -> Iterator[Statement]:
    """Two runs with as many attempts each as bring them to one share."""
    share = float(match["v"]) / 100
    for run, k in (("a", match["k"]), ("b", match["j"] or "1")):
        yield Share(
            f"{match['v']}%", share, share, 10.0 ** -len(match["v"].partition(".")[2]) / 100,
            "~" if match["op"] else "=", (int(match[run]),), metric=f"pass@{k}",
        )  # fmt: skip


def find_ranking(text: str, subject: int, other: int, attempts: frozenset[int]) -> list[Statement]:
    """A larger share of tasks in all runs than another run."""
    size = re.search(
        rf"\b(?:(?P<more>larger|higher|greater|bigger|more)|smaller|lower|fewer)\b(?: (?:share|"
        rf"fraction|proportion|percentage|number) of)?(?: of)?(?: the| its)? {_TASK}\b",
        text,
        re.IGNORECASE,
    )
    whole = parse_times(re.sub(r"\(\s*pass[@^]\d+\s*\)", " ", text), attempts)
    if size is None or whole is None or subject < 0:
        return []
    rest, kind, often, verb = whole
    k = (often and often.groupdict().get("m")) or "n"
    families = {("all", ""): ("^", 1), ("any", ""): ("@", 1), ("none", ""): ("@", -1)}
    families |= {("all", "?"): ("@", -1), ("any", "?"): ("^", -1), ("none", "?"): ("^", 1)}
    family, sign = families.get((kind, "?" if verb.strip("?") else ""), ("", 0))
    if not family or verb == "?" or not FILLER.fullmatch(rest.replace(size[0], " ")):
        return []
    sign *= 1 if size["more"] else -1
    return [Difference(size[0], subject, other, sign, "ranked", f"tasks{family}{k}")]
