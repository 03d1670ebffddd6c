"""Sentences in other words, before they are read: lists, changes of k, counts of tasks, tests."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence

from passhat.reporting.review import statements as words
from passhat.reporting.review.checking import Checker
from passhat.reporting.review.claim_text import ITEM, Passage
from passhat.reporting.review.grammar import P_VALUE, name_pattern
from passhat.reporting.review.rewrites import plain_number
from passhat.reporting.review.statements import ATTEMPTS, METRIC, NUMBER, OTHER, SPELT, TASKS

__all__ = ["heading_above", "plain_sentences", "with_tasks"]

# Numbers of attempts that change.
_TRIES = rf"(?:{ATTEMPTS})\b"
_ONE = r"(\d+|an?(?: single)?|one)\b"
_ALLOW = r"(?:(?:(?:by )?(?:allow|permit|grant|giv|tak|us|hav|requir|demand|add)\w*|with|for)\s+)?"
_K_CHANGES = (
    (rf"{_ALLOW}(\d+)(?: {_TRIES})? (?:instead of|rather than) {_ONE}(?: {_TRIES})?", "@"),
    (
        rf"{_ALLOW}(\d+) (?:successes|passes|successful {_TRIES})(?: in a row)? (?:instead of|"
        rf"rather than) {_ONE}(?: one| success)?",
        "^",
    ),
    (rf"(?:\w+ing )?from {_ONE}(?: {_TRIES})? to (\d+) {_TRIES}", "@"),
    (rf"(?:\w+ing )?(?:k|the (?:number|budget) of {_TRIES}) from (\d+) to (\d+)", "@"),
    (rf"(?<!all )(?<!the )(\d+) {_TRIES}(?= (?:get|take|bring|lift|raise|push)s?\b)", "@"),
    (rf"{_ALLOW}(?:an?|one|1|up to) (?:(?:single )?retry|(?:second|2nd|extra|additional|2) "
     rf"(?:{_TRIES}|chance))", "@"),
)  # fmt: skip
_LIFTS = (
    r"(?:rais|lift|tak|bring|push|mov|boost|increas|improv|driv|carr|help|get|reduc|lower|cut)\w*"
)
_GOES = (
    r"(?:go|ris|climb|improv|jump|mov|grow|gain|increas|rose|went|grew|fall|fell|drop|declin|"
    r"sink|sank|get)\w*"
)


_FROM_TO = rf"\bfrom (~?{NUMBER})%? to (~?{NUMBER})%?"
_K_SHAPES = (  # what changes, and two shares or the last one
    (rf"\b{_LIFTS} ([^,;%]*?) {_FROM_TO}", "{first} = {1}% and {last} = {2}%"),
    (rf"^\W*([^,;%]*?) (?:\w+ly )?{_GOES} {_FROM_TO}", "{first} = {1}% and {last} = {2}%"),
    (
        rf"\b{_LIFTS} ([^,;%]*?) to (~?{NUMBER})%,? up from (~?{NUMBER})%",
        "{first} = {2}% and {last} = {1}%",
    ),
    (rf"\b{_LIFTS} ([^,;%]*?) to (~?{NUMBER})%", "{last} = {1}%"),
)


def _k_change(sentence: str) -> str:
    """Two numbers of attempts and what they change, with the metrics in signs."""
    plain = plain_number(sentence)
    if METRIC.search(plain.replace("pass@k", "").replace("pass^k", "")):
        return sentence
    for pattern, family in _K_CHANGES:
        found = re.search(rf"\b{pattern}\b,?", plain, re.IGNORECASE)
        if found is None:
            continue
        ks = [int(k) if k.isdigit() else 1 for k in found.groups()] or [2]
        ks += [1] * (len(ks) < 2)
        first, last = (f"pass{family}{k}" for k in sorted(ks))
        rest = plain[: found.start()] + plain[found.end() :]
        rest = re.sub(r"\bpass[@^]k\b", "", rest)
        for shape, values in _K_SHAPES:
            shares = re.search(shape, rest, re.IGNORECASE)
            left = re.sub(_NAME, "", rest.replace(shares[0], "")) if shares else "0"
            named = list(dict.fromkeys(re.findall(_NAME, rest)))
            if shares and len(named) < 2 and not re.search(r"\d", left):
                who = named[0] if named else shares[1]
                stated = values.format(*shares.groups(), first=first, last=last)
                return f"{who} has {stated}."
        if re.search(rf"{NUMBER} points?\b", rest) and "%" not in rest:
            return f"{plain[: found.start()]} {last} instead of {first} {plain[found.end() :]}"
    return sentence


_TESTS = (
    ("sign", r"sign[- ]test"),
    ("mcnemar", r"McNemar(?:'s)?(?: exact)?(?: test)?"),
    ("", r"(?:permutation|randomi[sz]ation|Wilcoxon(?: signed[- ]rank)?|bootstrap|t)?[- ]?test"),
)
_LIST = rf"{NUMBER}(?:(?:,? and|,) {NUMBER})+"
_NAME = r"⟦n\d+⟧"


def _percent_list(match: re.Match[str]) -> str:
    """Numbers of as many names, in percent."""
    numbers = match[0][match[0].rindex("⟧") :]
    is_full = len(re.findall(NUMBER, numbers)) == len(re.findall(_NAME, match[0]))
    scored = re.sub(NUMBER, lambda one: f"{one[0]}%", numbers)
    return match[0].removesuffix(numbers) + scored if is_full else match[0]


_REWRITES: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (
        r"\b(best|worst|highest|lowest) and (?:the |its )?(best|worst|highest|lowest) "
        r"(?:single |individual )?(run|trial|seed|round)s?\b",
        r"\1 \3 and \2 \3",
    ),
    (  # A ranges from 56% to 74% and B from 26% to 40%
        rf"(\b(?:rang|span|vari|vary|fluctuat)\w*\b[^;⟦]*?{NUMBER}%?\s*(?:to|and|-|–)\s*{NUMBER}%?"
        rf",?\s*(?:(?:and|while|but)\s+)?{_NAME}\s+)(?=(?:from|between) \d)",
        r"\1ranges ",
    ),
    (  # wins/losses/ties of A against B: 31/10/79
        r"\b(?:wins?\W+loss(?:es)?(?:\W+(?:ties|draws?))?|W/L(?:/[TD])?)\b"
        rf"((?:{_NAME}|[^.;\d%⟦])*?)\W+(\d+)\W+(\d+)(?:\W+(\d+))?(?![\w.]*[%\d])",
        lambda m: (
            f"{re.sub('^ of', '', m[1])} {m[2]} wins, {m[3]} losses" + f", {m[4]} ties" * bool(m[4])
        ),
    ),
    (  # drops from 61% to 8% over 8 attempts: only asking for all of them lowers a share
        rf"\b(drop|fall|declin|decreas|sink|slid|dwindl)(\w*) from ({NUMBER}%) to ({NUMBER}%) "
        rf"(?:over|across|in) (?:the |all |its )*(\d+) {ATTEMPTS}\b",
        r"\1\2 from \3 (pass^1) to \4 (pass^\5)",
    ),
    # pass@1/3/5, 61/58/40%, 61/58/40; 61, 58 and 40 percent.
    (
        r"\b(pass[@^])(\d+)((?:\s?/\s?\d+)+)\b(?!\s?%)",
        lambda m: ", ".join(f"{m[1]}{k}" for k in re.findall(r"\d+", m[2] + m[3])),
    ),
    (
        rf"(?<![\w.^@/-]){NUMBER}(?:\s?/\s?{NUMBER})+\s?(?:%|percent\b)|"
        rf"(?<![\w.^@/-]){NUMBER}%?(?:\s?/\s?{NUMBER}%?){{2,}}(?![\w/-])",
        lambda m: ", ".join(f"{one}%" for one in re.findall(NUMBER, m[0])),
    ),
    (
        r"(?<!k = )(?<!k=)(?<!trial )(?<!run )(?<!round )"
        rf"(?<![\w.^@/-])({_LIST})(?:\s?%| per ?cent\b)(?! points?)",
        lambda m: re.sub(NUMBER, lambda one: f"{one[0]}%", m[1]),
    ),
    (rf"({_NAME})\s?/\s?(?={_NAME})", r"\1, "),
    (r"\bs\.\s?([de])\.(?:\s?m\.)?(?=,?\s?[=:]?\s?\d)", lambda m: f"S{m[1].upper()}"),
    (r"\bp-?values? (?:of|is|was)\s*(?=[<>=≤≥])", "p "),
    (r"\bp(?:-?value)? (?:of|is|was) (?=\d)", "p = "),
    (
        rf"(?<![\w.^@/-])(?<!between )(?<!from )(\d+(?:(?:,? and|,) \d+)+)(?= (?:{TASKS})\b)",
        lambda m: re.sub(r"\d+(?!\d*$)", lambda one: f"{one[0]} tasks", m[1]),
    ),
    (  # 7.5 -> 40.0 (A -> B)
        rf"({NUMBER}%?)\s*(?:→|->|to)\s*({NUMBER}%?)\s*\(({_NAME})\s*(?:→|->|to)\s*({_NAME})\)",
        r"\3 \1, \4 \2",
    ),
    (
        rf"\bpass[@^]\d+[^.;\d]*?(?:{_NAME}(?:, |,? and )?){{2,}}\W*{_LIST}(?! ?[%\w]|\.\d)",
        _percent_list,
    ),
    (  # ... (26.7%). That is a gap of 60 points.
        r"(?<=[\w%)])\.\s+(?:that|this|which|it) (?:is|makes|means|leaves|gives)(?: for)? an? "
        r"(?=(?:\w+ )?(?:gap|difference|drop|distance|spread|gain|rise) of )",
        ", a ",
    ),
    (rf"\bboth ({_NAME} and {_NAME})(?=[^.;]*\bby {NUMBER}[^.;]{{0,8}} and {NUMBER})", r"\1"),
)


def _of_all(match: re.Match[str]) -> str:
    """Nothing for "of the three" where it is all runs; "of the agents" behind a quantifier."""
    before = match[1] or ""
    if re.fullmatch(r"(?:none|all|each|any|both|every) ", before, re.IGNORECASE):
        return f"{before}of the agents"
    is_part = re.fullmatch(
        rf"(?:\d+|{'|'.join(_NUMBER_WORDS)}|some|most|many|half|only) ", before, re.IGNORECASE
    )
    return match[0] if is_part else before


def plain_sentences(text: str, names: Sequence[Sequence[str]]) -> str:
    """The text with lists, changes of k, counts of tasks and tests written in one way."""
    found: list[str] = []

    def mark(match: re.Match[str]) -> str:
        found.append(match[0])
        return f"⟦n{len(found) - 1}⟧"

    masked = name_pattern(names).sub(mark, text.replace("⟦", "[").replace("⟧", "]"))
    number = rf"(?:{len(names)}|{_NUMBER_WORDS[min(len(names), 8)]})"
    kinds = r"(?: (?:agents?|models?|systems?|versions?|runs?))?"
    of_all = (
        rf"((?:\d|[\w^@]*\w) |^)(?:of|among|out of) (?:the |all |our |these )*{number}\b"
        rf"(?!\.\d|[%-]| (?:[\w-]+ )?(?:{TASKS}|{ATTEMPTS})\b){kinds}"
    )
    for pattern, new in (*_REWRITES, (of_all, _of_all)):
        masked = re.sub(pattern, new, masked, flags=re.IGNORECASE)
    cuts = [0, *(match.end() for match in words.SENTENCE.finditer(masked)), len(masked)]
    sides = ""
    if len(names) == 2:
        found += [names[1][0], names[0][0]]
        sides = f"⟦n{len(found) - 2}⟧ against ⟦n{len(found) - 1}⟧: "
    parts = [_plain_sentence(masked[a:b], sides) for a, b in itertools.pairwise(cuts)]
    return re.sub(r"⟦n(\d+)⟧", lambda m: found[int(m[1])], "".join(parts))


_NUMBER_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight")


_SPREADS = (
    ("SE", r"(?:standard errors?|\bs\.?e\.?m\.?|\bs\.e\.|\bSE)"),
    ("SD", r"(?:standard deviations?|\bs\.d\.|\bSD|\bstd\.?(?: ?dev\w*\.?)?|\bstdev)"),
    (
        "CI",
        r"(?:\d+% )?(?:(?:bootstrap|paired|percentile|confidence) )*(?:half-widths?|intervals?|"
        r"CIs?)(?!\W*\d)(?: half-widths?)?",
    ),
)


def _name_spread(sentence: str) -> str:
    """The sentence with the name of what is behind "±" at every one: 61.5 ± 3.0 SE."""
    for word, pattern in _SPREADS[:2]:  # 61.5%, s.d. 3.0
        beside = rf"({NUMBER}%?),? (?:with )?(?:an? )?{pattern}(?: of|\s?=|:)?\s*({NUMBER})"
        sentence = re.sub(rf"{beside}(?:%| points?)?", rf"\1 ± \2 {word}", sentence, flags=re.I)
    named = [pair for pair in _SPREADS if re.search(rf"{pair[1]}(?!\w)", sentence, re.I)]
    if len(named) != 1 or not re.search(rf"(?:±|\+/-)\s*{NUMBER}", sentence):
        return sentence
    word, pattern = named[0]
    sign = r"(?:±|\+/-)\s*"
    pattern = (
        rf"(?:\(?(?:mean|average)\s*(?:{sign}|and\s*)|{sign})?(?:1 |one |the )?{pattern}(?!\w)"
    )
    rest = re.sub(pattern, "", sentence, flags=re.IGNORECASE)
    return re.sub(rf"((?:±|\+/-)\s*{NUMBER})(?:\s?(?:%|points?|pp))?", rf"\1 {word}", rest)


def _plain_sentence(sentence: str, sides: str) -> str:
    """A sentence in other words; ``sides`` names two runs where it names none."""
    end = sentence[len(sentence.rstrip()) :]
    for test, pattern in _TESTS:
        named = r"(?:\b(?:in|by|with|using|according to|from) )?(?:\b(?:an?|the) )?(?:(?:exact|"
        named += rf"paired|two-sided) )*(?<!-)\b{pattern}(?: (?:over|across|on) (?:the )?tasks)?"
        if P_VALUE.search(sentence) and re.search(named, sentence, re.IGNORECASE):
            sentence = re.sub(rf"{named},?", "", sentence, flags=re.IGNORECASE)
            sentence = re.sub(r"\bp(?:-value)?\s?(?:of\s)?(?=[<>=≤≥\d])", f"p({test}) ", sentence)
            break
    if len(set(re.findall(r"\bk\s?=\s?(\d+)", sentence))) > 1 and not METRIC.search(sentence):
        shares = [float(one) for one in re.findall(rf"({NUMBER})\s?%", sentence)]
        if len(shares) > 1:
            family = "pass^" if shares[-1] < shares[0] else "pass@"
            sentence = re.sub(r"\bk\s?=\s?(?=\d)", family, sentence)
    sentence = _tally(_lifts_by_metric(_k_change(_name_spread(sentence))), sides)
    changes = count_changes(sentence)
    if changes != sentence and not re.search(r"⟦n|\b(?:it|they|its)\b", changes):
        changes = f"{sides}{changes}"
    return f"{changes.rstrip()}{end}"


# Wins and losses in brackets: (31 wins, 10 losses, 79 ties, sign test p < 0.01).
_TALLY = re.compile(
    r"\s*[(,]\s*(?P<w>\d+) wins?\W+(?:and |vs |to |against )?(?P<l>\d+) loss(?:es)?"
    r"(?:\W+(?:and )?(?P<t>\d+) (?:ties|tied|draws?))?(?=\s*[,;.)]|$)[,;]?\s*"
    r"(?P<rest>[^()]*(?:\([^()]*\)[^()]*)?)(?:\)|$)",
    re.IGNORECASE,
)


def _tally(sentence: str, sides: str) -> str:
    """Wins and losses behind a comparison as a sentence of their own, about the same two runs."""
    match = _TALLY.search(sentence)
    named = list(re.finditer(_NAME, sentence))
    if match is None or len({one[0] for one in named}) > 2:
        return sentence
    subjects = [
        one[0]
        for one in named
        if not _IS_OBJECT.search(re.sub(rf"{_GAIN} of\s+(?:the )?$", "", sentence[: one.start()]))
    ]
    wins, losses = (int(match[name]) for name in "wl")
    before, after = sentence[: match.start()], sentence[match.end() :].rstrip(" .")
    found = words.POLARITY.search(before)
    is_down = found is not None and bool(found["down"] or found["fall"])
    if (is_down and wins > losses) or (named and not subjects):
        return f"{before} ({wins} for one side, {losses} for the other){after}."
    rest = f" ({match['rest'].strip()})" if match["rest"].strip(" .,") else ""
    others = [one[0] for one in named if one[0] != subjects[0]] if named else []
    who = f"{subjects[0]} " if named else sides
    who = f"{subjects[0]} against {others[0]}: " if others else who
    counts = f"better on {wins} tasks, worse on {losses} tasks"
    counts += f", tied on {match['t']} tasks" * bool(match["t"])
    return f"{before}{rest}{after}. {who}{counts}."


_GAIN = r"\b(?:advantage|lead|edge|margin|gain|improvement|lift)\b"
_AT_METRIC = (
    rf"({NUMBER})(?: points?)? (?:\w+ )?(?:at|in|for|on|by|with)? ?\(?({METRIC.pattern})\)?"
)


def _lifts_by_metric(sentence: str) -> str:
    """An advantage at two metrics, from 11 points at pass@1 to 5 at pass@8, as two lifts."""
    plain = plain_number(sentence)
    pairs = [(one[1], one[2]) for one in re.finditer(_AT_METRIC, plain, re.IGNORECASE)]
    named = list(dict.fromkeys(re.findall(_NAME, plain)))
    rest = re.sub(rf"{_AT_METRIC}|{_NAME}|⟦\w+⟧", "", plain, flags=re.IGNORECASE)
    is_gain = re.search(_GAIN, plain, re.IGNORECASE) and " point" in plain
    if len(pairs) != 2 or len(named) != 2 or not is_gain or re.search(r"\d", rest):
        return sentence
    first, last = (float(size) for size, _ in pairs)
    is_less = re.search(
        r"\b(?:shr[iau]nk|fall|fell|drop|declin|decreas|narrow|diminish|melt|fad)", plain
    )
    is_more = re.search(r"\b(?:gr[oe]w|ris|rose|widen|increas|climb|expand)", plain)
    if (is_less and last >= first) or (is_more and last <= first):
        return sentence
    behind = [
        one[0]
        for one in re.finditer(_NAME, plain)
        if _IS_OBJECT.search(re.sub(rf"{_GAIN} of\s+(?:the )?$", "", plain[: one.start()]))
    ]
    if len(set(behind)) != 1:
        return sentence
    ahead = next(one for one in named if one != behind[0])
    lifts = " and ".join(f"by {size} points at {metric}" for size, metric in pairs)
    return f"{ahead} beats {behind[0]} {lifts}."


# Tasks that got better or worse.
_BETTER = (
    r"better|improv\w*|wins?|won|gain(?:s|ed)?|helps?|helped|higher|ahead|beats?|fix(?:es|ed)?|"
    r"outperform\w*|outscor\w*|leads?|improvements?|gets? better|stronger"
)
_WORSE = (
    r"worse\w*|los(?:es?|t)|loss(?:es)?|regress\w*|breaks?|broke|broken|hurts?|lower|behind|"
    r"underperform\w*|declin\w*|degrad\w*|deteriorat\w*|trails?|weaker"
)
_TIED = (
    r"unchanged|ties?|tied|draws?|drew|equal(?:ly)?(?: (?:well|often|good|strong))?|"
    r"the same (?:number|result|score)|no (?:change|difference)|identical\w*|unaffected|"
    r"(?:nothing|not) chang\w*|chang\w* nothing|(?:level|even)(?= on| in|,| for)|"
    r"(?:stay|remain|are|is|were|perform|score)\w* (?:exactly )?the same"
)
_CHANGE = re.compile(
    rf"\b(?:(?P<tied>{_TIED})|(?P<better>{_BETTER})|(?P<worse>{_WORSE}))\b|"
    r"(?<![\w.+@^-])(?P<n>\d+)(?![\d.]*[\d%]| points?|-\w|"
    rf" (?:[a-z]+ )?(?:{ATTEMPTS}|agents|models)\b)(?: (?:more )?{TASKS}\b)?(?: ?(?:/|(?:out "
    rf")?of) ?(?:the |all |our )*(?P<m>\d+)(?: {TASKS}\b)?)?",
    re.IGNORECASE,
)
_VERBS = r"\b(?:beat|outperform|outscor|lead|trail|top|edge|surpass|underperform)\w*"
_IS_OBJECT = re.compile(
    rf"(?:\b(?:than|from|over|against|on|of|to|vs|versus|behind)|{_VERBS})\s+"
    r"(?:the |out |baseline |agent |model )*$",
    re.IGNORECASE,
)
_CHANGE_GAP = re.compile(
    r"(?:[\s,(=]|⟦n\d+⟧|\b(?:on|in|for|the|only|just|other|remaining|exactly|another|than|from|"
    r"over|against|to|tasks?|were|was|are|is|got|gets?|have|has|had|been|did|do|does|stay\w*|"
    r"remain\w*|between|and|where|which|that|it|became|show\w*|rest|of|them|all|by|perform\w*|with)\b)*"
)


def count_changes(sentence: str) -> str:
    """Counts of tasks that got better, worse or neither: better on 9 tasks, worse on 4 tasks."""
    plain = plain_number(sentence)
    if len(set(re.findall(r"⟦n\d+⟧", plain))) == 2:  # A leads on 8 tasks, B on 4
        plain = re.sub(
            rf"\b((?:{_BETTER})(?: on)? \d+(?: {TASKS})?),?\s*(?:and |while )?⟦n\d+⟧ (?:on )?"
            r"(?=\d+\b(?! of|%|\.\d))",
            r"\1, worse on ",
            plain,
            flags=re.IGNORECASE,
        )
    marks = list(_CHANGE.finditer(plain))
    counts = [at for at, match in enumerate(marks) if match["n"]]
    rest = _CHANGE.sub(" ", plain)
    is_denied = marks and re.search(r"\b(?:not|no|never)\b[^,;]*$", plain[: marks[0].start()])
    if (
        not counts
        or is_denied
        or METRIC.search(plain)
        or re.search(r"\d+(?:\.\d+)?%| points?\b", rest)
    ):
        return sentence
    pairs: dict[int, int] = {}
    has_nouns = re.search(r"\d (?:wins?|loss(?:es)?|ties|draws?)\b", plain) is not None
    for side in (1,) if has_nouns else (-1, 1):
        pairs = {at: at + side for at in counts if 0 <= at + side < len(marks)}
        if all(not marks[at]["n"] for at in pairs.values()) and len(pairs) == len(counts):
            break
    else:
        pairs = {} if has_nouns else _pair(counts, marks)
    gaps = [plain[marks[min(pair)].end() : marks[max(pair)].start()] for pair in pairs.items()]
    if len(pairs) < len(counts) or not all(map(_CHANGE_GAP.fullmatch, gaps)):
        return sentence
    first = marks[min((*pairs, *pairs.values()))].start()
    last = marks[max((*pairs, *pairs.values()))].end()
    inner = _CHANGE.sub(" ", plain[first:last])
    if re.search(r"(?<!⟦n)\d|\bnot\b|\bnever\b|\bno\b", inner):
        return sentence
    parts = [_change(marks[word], marks[at]) for at, word in sorted(pairs.items())]
    head, tail = plain[:first].strip(" ,;:"), plain[last:].strip(" .,;:")
    others = re.findall(r"⟦n\d+⟧", inner)
    is_pair = len(others) == 2 and re.search(r"\bbetween\b", inner)
    if len(others) > 2 or (len(others) == 2 and not is_pair):
        return sentence
    subjects = [
        one[0]
        for one in re.finditer(_NAME, plain[first:last])
        if not _IS_OBJECT.search(plain[: first + one.start()])
    ]
    if subjects and len(others) == 1:
        head, others = f"{subjects[0]} {head}", []
    if others:
        kind, _, rest = parts[0].partition(" ")
        parts[0] = f"{kind} than {' and '.join(others)} {rest}"
    head, tail = ("", f"{head} {tail}".strip()) if not re.search(r"\w{2}|⟦", head) else (head, tail)
    return f"{head} {tail}: {', '.join(parts)}." if tail else f"{head} {', '.join(parts)}."


def _pair(counts: Sequence[int], marks: Sequence[re.Match[str]]) -> dict[int, int]:
    """The word of each count, before or behind it, where the order changes on the way."""
    pairs: dict[int, int] = {}
    for at in counts:
        for word in (at - 1, at + 1):
            is_free = 0 <= word < len(marks) and not marks[word]["n"]
            if is_free and word not in pairs.values():
                pairs[at] = word
                break
    return pairs


def _change(word: re.Match[str], count: re.Match[str]) -> str:
    kind = "better" if word["better"] else "worse" if word["worse"] else "tied"
    total = f" of the {count['m']}" if count["m"] else ""
    return f"{kind} on {count['n']}{total} tasks"


# The text of a passage, before its sentences are read.
_NO_TASKS = re.compile(
    rf"{ATTEMPTS}|{TASKS}|{OTHER.pattern}|points?|percent|agent|model|system|version|hour|day|week|"
    r"month|year|line|success|succes|successe|failure|error|win|los|losse|tie|it|thi|ha|doe|pas|passe|"
    r"other|dollar|people|user|second|minute|score|result|desk",
    re.IGNORECASE,
)
_DOMAINS = ("airline", "retail", "telecom")
_SOLVES_SOME = (
    r"\b(?:solv|pass|resolv|complet|captur|process|handl|clos|answer)\w* (?:about |only |just |~)*"
    r"[\d.]+ ?% of (?:the |all |its |our )*(?:[a-z-]+ )??([a-z]{3,}s)\b"
)

_RUN_EACH = (
    r"\bon (?:the |all |our )*\d{2,} (?:[a-z-]+ )??(?=[a-z]{3,}s\b)([a-z]+),? (?:with |and |at )?"
    rf"(?:\d+|{SPELT}) {ATTEMPTS} (?:each|apiece|per\b)"
)


def with_tasks(passage: Passage, checker: Checker) -> str:
    """The text with the author's word for tasks as such: 100 repos, where there are 100 tasks."""
    text = _without_total(_without_domain(passage, checker), checker)
    patterns = [
        rf"(?<![\w.,/]){count}(?:-(?=[a-z]{{3}})| (?:[a-z-]+ )??(?=[a-z]{{3,}}s\b))"
        r"([a-z]+)(?![\w-])"
        for count in checker.sizes.tasks
    ]
    for pattern in [*patterns, _SOLVES_SOME, _RUN_EACH]:
        for found in re.finditer(pattern, passage.whole):
            noun = found[1].removesuffix("s")
            noun = f"{noun[:-2]}y" if noun.endswith("ie") else noun
            if not _NO_TASKS.fullmatch(noun):
                forms = rf"(?<![\w-]){noun.removesuffix('y')}(ies|s|y)?(?![\w-])"
                text = re.sub(forms, lambda m: "tasks" if m[0].endswith("s") else "task", text)
    return text


def _without_total(text: str, checker: Checker) -> str:
    """The text without "in 600 attempts", all of a run, where it counts tasks by their passes."""
    sizes = checker.sizes
    if len(sizes.tasks) != 1 or len(sizes.attempts) != 1 or max(sizes.attempts) < 2:
        return text
    total = max(sizes.tasks) * max(sizes.attempts)
    count = rf"(?:{total}|{total:,}) (?:\w+ )?{ATTEMPTS}\b,?"
    often = rf"\b(?:never|at least once|always|every time)\b[^.;]*\b{TASKS}\b"
    words = rf"\b(?:in|over|across|within|after|of) (?:all |its |the |a total of )*{count}"
    return re.sub(rf"{words}(?=[^.;]*{often})", "", text, flags=re.IGNORECASE)


def _without_domain(passage: Passage, checker: Checker) -> str:
    """The text without the domain of a benchmark, where it is the only one that is named."""
    if any(
        domain in name.lower() for name in itertools.chain(*checker.names) for domain in _DOMAINS
    ):
        return passage.text
    known = " ".join((passage.whole, *checker.sizes.task_names)).lower()
    domains = [domain for domain in _DOMAINS if domain in known]
    if len(domains) != 1:
        return passage.text
    after = r"(?: (?:customer (?:service|support)|domain|set|split|suite))?"
    of_it = rf"\b(?:(?:on|in|at|for) (?:the )?)?{domains[0]}{after}\b ?"
    return re.sub(of_it, "", passage.text, flags=re.IGNORECASE)


def heading_above(passage: Passage) -> str:
    """The heading above a passage or list, which may name the run that it is about."""
    lines = [line.strip() for line in passage.whole.splitlines()[: passage.line]]
    above = lines[-2::-1]
    if lines and ITEM.match(lines[-1]):
        above = list(itertools.dropwhile(lambda line: not line or ITEM.match(line), above))
        if above and not re.search(r"\d%|[.!?]$", above[0]):
            return above[0]
    return next((line for line in above if line.startswith("#")), "")
