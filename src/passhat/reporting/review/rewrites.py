"""Phrases that name attempts, and numbers and bounds written in one way."""

from __future__ import annotations

import re
from collections.abc import Callable

from passhat.reporting.review.statements import (
    ATTEMPTS,
    INTEGER,
    METRIC,
    NUMBER,
    NUMBER_WORDS,
    OBJECT,
    PASSED,
    POLARITY,
    SPELT,
    TASKS,
    UNITS,
    is_known,
    spell,
)

_INT, _ATT, _TASK = INTEGER, ATTEMPTS, TASKS
_OF_RUNS = (
    rf"(?:\w+ )??(?:of|over|across|among|out of|in|from) (?:the |its |our |all |any of )*"
    rf"(?:(?P<k>{_INT}) )?(?:independent |separate |repeated )?{_ATT}\b"
)
_ONE_RUN = r"(?:[ -](?:single )?(?:run|seed|trial|repetition))\b"
_RUNS: tuple[tuple[str, str], ...] = (
    (
        rf"\bbest[ -]of[ -](?:the |its )?(?P<k>{_INT})(?: {_ATT})?|"
        + rf"\b(?:best|highest|maximum|max|peak) (?:{_OF_RUNS})".replace("<k>", "<k2>")
        + rf"|\b(?:best|highest[ -]scoring){_ONE_RUN}",
        ":best",
    ),
    (
        rf"\b(?:worst|weakest|lowest|minimum|min) (?:{_OF_RUNS})|"
        rf"\b(?:worst|lowest[ -]scoring){_ONE_RUN}",
        ":worst",
    ),
    (r"(?<!s )(?<!perform )(?<!performed )\b(?:best|highest)(?=\s*\()", ":best"),
    (r"\bin (?:the|its) best(?: one)?,?(?= (?:it |\w+s )?~?\d)", ":best"),
    (r"\bin (?:the|its) worst(?: one)?,?(?= (?:it |\w+s )?~?\d)", ":worst"),
    (r"\b(?:worst|lowest)(?=\s*\()", ":worst"),
    (
        rf"\b(?:in )?some(?: of)?(?: the| its)?(?: {_ATT})?,? (?:but|and) (?:not|fail\w*) (?:in )?"
        r"(?:the )?(?:all|every|each|others?|rest)\b"
        rf"(?: of)?(?: the| its)?(?: \d+)?(?: {_ATT}\b)?|\bflaky\b(?:: [a-z]+ sometimes, but not "
        r"always)?|\bsometimes (?:[a-z]+ )?(?:but|and|,) (?:sometimes )?(?:not always|fail\w*)",
        ":some",
    ),
    (rf"\bmedian (?:{_OF_RUNS})|\bmedian{_ONE_RUN}", ":median"),
    (
        rf"\b(?:on |in |at |by )?(?:its |the |their )?(?:very )?first[ -](?:{_ATT}|go|time)\b",
        ":first",
    ),
)
# Runs of the benchmark by their numbers: in trial 3, in each of runs 2 to 5.
_BEHIND = "".join(
    rf"(?<=\b{word} )|" for word in ("in", "on", "of", "at", "to", "from", "than", "each", "and")
)
_NTH = rf"{_INT}(?!\.?\d|%)"
TRIAL = (
    rf"\b(?:in |on |at |of |for |during )?(?:(?:all|each) of |each |every |both )?(?:the "
    rf")?(?:(?:trial|round|repetition|iteration)s?|(?:{_BEHIND}(?<=, )|(?<=\()|^)runs?) (?:no\.? ?|"
    rf"number |#)?(?P<k>last\b|(?!\d+ (?:{_TASK}|{_ATT})\b){_NTH}(?:(?:, and |, | and | to | "
    rf"through |-|–){_NTH})*)"
)
_RUNS = (*_RUNS, (TRIAL, ":trial"))
# Any of K ("@"), within K ("<", which of failures is none of K), all of K ("^"); "n" for all that
# were made; a colon for one run of the benchmark among all.
_SUCCESSES = r"(?:success(?:es)?|passes|wins|solves|correct (?:answers|solutions))"
_AMONG = r"(?:in|of|out of|within|over|across|with|from|after)"
PROTOCOLS: tuple[tuple[str, str], ...] = (
    (
        rf"\b(?:in |on |by )?at least (?:once|1|one)(?: \w+)? {_AMONG} "
        rf"(?:the |its |their |all |every |any of )*(?P<k>{_INT})(?: {_ATT})?\b",
        "@",
    ),
    *_RUNS,
    (rf"\b(?:any|1|one) (?:out )?of (?:the |its )?(?P<k>{_INT}) {_ATT}\b", "@"),
    (
        r"\bat least (?:once|one (?:\w+)?)\b|\b(?:in|on|with) any (?:single )?(?:attempt|try|"
        r"run)\b",
        "@n",
    ),
    (
        rf"\bpass(?:es|ed)? (?P<k8>{_INT})/(?P=k8)\b|\b(?:in |on |over |for |demand |require |"
        rf"need )(?P<k>{_INT})(?: times)? (?:out )?of (?P=k)\b(?! {_TASK})(?: {_ATT})?|\ball "
        rf"(?P<k7>{_INT}) (?:out )?of (?P=k7)\b(?! {_TASK})|\b(?:all )?(?P<k5>{_INT})(?: times)? "
        rf"(?:out )?of (?P=k5) {_ATT}|\b(?P<k6>{_INT}) times (?:out )?of (?P=k6)\b|"
        rf"\b(?P<k2>{_INT}) (?:independent |\w+ )?{_ATT} (?:all|both) (?=succeed|pass)|"
        rf"\b(?P<k3>{_INT})(?: {_ATT}| {_SUCCESSES})?[ -]in[ -]a[ -]row\b|\b(?P<k4>{_INT}) "
        rf"(?:consecutive|straight|successive) (?:{_ATT}|{_SUCCESSES})",
        "^",
    ),
    (
        rf"\b(?:in |on |when |if |over |across )?(?:all|each)(?: of)?(?: the| its| their)? "
        rf"(?P<k>{_INT})(?: (?:independent )?{_ATT}| must pass| pass\b| succeed)(?: (?:must "
        rf")?(?:pass|succeed))?",
        "^",
    ),
    (
        rf"\b(?:in |on )?both (?:times|of (?:its|the) )?(?:{_ATT}|2 {_ATT})\b|\b(?:twice|2 times) "
        rf"in a row\b|\b2 {_ATT}(?= (?:of [^,;]*? )?both (?:pass|succeed))",
        "^2",
    ),
    (
        rf"\b(?:given|with|within|in|after|using|allowed|has|gets?|(?:if you )?let it (?:try|"
        rf"run))(?: an?)? (?:budget of |up to |at most |any of )?(?:its |the )?(?P<k>{_INT}) "
        rf"{_ATT}\b(?! (?:each|per|for each|on|in total|of))|\b(?:if|when) (?:it|they|⟦r\d+⟧) "
        rf"(?:may|can|is allowed to) try (?P<k2>{_INT}) times",
        "<",
    ),
    (
        rf"\b(?:given |giving |with |within |using |allow\w+ |in |it )?(?:⟦r\d+⟧\s+)?(?:a budget "
        rf"of |up to |at most )+(?P<k>{_INT}) {_ATT}\b(?: (?:each|per {_TASK}|for each {_TASK}))?",
        "<",
    ),
    (r"\bwithout (?:a single|a|any|one) (?:failure|error|miss|mistake|slip)s?\b(?! in\b)", "^n"),
    (
        rf"\b(?:in |on )?every (?:single )?(?:time|{_ATT})\b|(?<!% of )\b(?:in |on )?all (?:of )?"
        r"(?:its |the |their )?(?:attempts|runs|tries|trials|repetitions)\b|\bin each (?:attempt|"
        r"run|try|trial)\b|\beach time\b|\balways\b|\bconsistently\b(?! (?:now )?(?:sits?|scor\w+|"
        r"lands?|hover\w*|stays?|around|about|above|below|reach\w*|outperform\w*|beats?|leads?|"
        r"ahead|better)\b)|\breliably\b|\bwithout fail\b",
        "^n",
    ),
    (
        rf"\b(?:(?:in |on |of |with |by )?(?:a |one |the |its )?(?:single|individual)[ -]{_ATT}|"
        rf"(?:in|with|on|of) (?:only |just )?(?:a |a single |one |1 )(?:{_ATT}|go))\b"
        rf"(?: (?:per|on each|for each) {_TASK})?|\b(?:per|each)[ -](?:attempt|try|run|trial|"
        r"sample)\b|\bone-try\b|\bon average\b|\bmean success\b",
        "^1",
    ),
)
NEVER = rf"\bnever (?:once |even |been |ever )?(?:gets?|got|works?|{PASSED})\b(?: right)?"
EARLY = 4 + len(_RUNS)
"""The first protocols hold a count that is no share: at least one of its six attempts."""
# What is no result: levels, settings, places in a text, costs.
DROPPED = (
    rf"\(?\b{NUMBER}%[ -](?:(?:paired|bootstrap|percentile|clustered) )*(?:confidence|credible|"
    rf"CIs?|intervals?|level|bands?)\b(?: (?:level|intervals?))?",
    rf"\b(?:temperatures?|T|top_p|seed|α|alpha)\s*(?:=|of|is|was|at|:)?\s*{NUMBER}(?:(?:,| and|"
    rf" or) {NUMBER})*",
    rf"\b(?:Table|Section|Figure|Fig|Sec|Tab|Appendix|Chapter|Equation|version|Python|line|page|"
    rf"step)\s?{NUMBER}\w*",
    r"\[\d+(?:,\s?\d+)*\]|\b(?:19|20)\d\d(?:-\d\d){0,2}\b|[$€£]\s?\d[\d.,]*|(?<!⟦)\bv\d[\w.]*|#\d+|\b\d+-shot\b",
    r"\b(?:clear of|away from|exclud\w+|includ\w+|contain\w*|cross\w*|overlap\w*|cover\w*|"
    r"above|below|straddl\w*|touch\w*) (?:0|zero)\b(?!\.\d|%)",
    rf"\b{NUMBER}\s?[x×] (?:the|as many|as much) (?:tokens|costs?|price|latency|time|compute|"
    r"calls)\b",
    rf"\b{NUMBER}\s?(?:[A-Z]\w+ )?(?:GPUs?|TPUs?|GPU hours|nodes|cores|seconds?|minutes?|hours?|"
    rf"days?|ms|s|bits?|steps?|turns?|tokens?|dollars?|tools?|GB|MB|B|M|"
    r"million|billion|weeks?|months?|years?|calls?)\b",
    r"(?<!of )\b\d+-bit\b",
    rf"\b(?:of |the |these |both )*{INTEGER} (?:[\w-]+ ){{0,2}}?(?:models?|agents?|systems?|"
    r"assistants?|candidates?|contenders?|bots?|sizes|versions|variants|checkpoints|setups)\b",
)


__all__ = ["TRIAL", "plain_number"]

_FRACTIONS = {"half": 50.0, "third": 100 / 3, "quarter": 25.0, "fifth": 20.0, "tenth": 10.0}


def _fraction(match: re.Match[str]) -> str:
    share = UNITS.get((match[2] or "one").lower(), 1) * _FRACTIONS[match[3].lower()]
    return f"{'' if match[1] else '~'}{share:.1f}%"


def _shares_of(match: re.Match[str]) -> str:
    """Several counts of one total, each as a share."""
    counts, total = [int(count) for count in re.findall(r"\d+", match[1])], int(match[2])
    if total < max(counts) or not total:
        return match[0]
    return re.sub(r"\d+", lambda count: f"{100 * int(count[0]) / total:.1f}%", match[1])


def _ranks(match: re.Match[str]) -> str:
    """Runs in their order, a clause for each."""
    names = [name for name in match.groups() if name]
    metric = METRIC.search(match.string)
    by = f" by {metric[0]}" if metric else ""
    places = zip(names, ("first", "second", "third"), strict=True)
    return " ; ".join(f"{name} ranks {place}{by}" for name, place in places)


_ORDINALS = {
    word: at
    for at, word in enumerate(
        ["second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"], 2
    )
}
_ITEM = rf"(?:(?:the|its|his|all|their|these|those) )*(?:[\w-]+ )?(?:{TASKS}|{ATTEMPTS})\b"
_REWRITES: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"[−‒]", "-"),
    (r"’", "'"),
    (r"\bavg\b\.?(?!\s?[@^])", "average"),
    (r"\bin half\b", "by half"),
    (rf"\bk (?:[\w-]+ ){{0,2}}{ATTEMPTS} (?:all|each) (?:succeed|pass)\w*", "pass^k"),
    (  # a fix of a share of the tasks is a solution; one of three bugs may be anything
        r"\bfix(?:es|ed|ing)? (?=(?:about |only |just )?~?[\d.]+\s?%|"
        r"\d+ (?:out )?of (?:the |all )*\d)",
        "solves ",
    ),
    (r"\b(?:do|does|did|is|are|was|were|could|has|have|ca|can|wo)n't\b", "not"),
    (r"\bcannot\b", "not"),
    (r"\bA/B(?=[- ](?:test|result|experiment|comparison))", ""),
    (r"\bevery (?:single )?one of\b", "all of"),
    (r"\b(?:not (?:a single )?one|none|not any) of (?=(?:the |its |all )*\d)", "0 of "),
    (
        rf"\bno (?=(?:single )?(?:{TASKS})\b(?! of))|\bnone of (?=(?:the |its |all )*(?:{TASKS}|"
        rf"{ATTEMPTS}))",
        "0% of ",
    ),
    (r"\bone (?=of \d[\d.]*\s?%)", "that "),
    (r"\bnext[- ]best\b", "second-best"),
    (r"\b(?:half a|a half) (?=points?\b)", "0.5 "),
    (r"\ba (?=(?:percentage )?point\b)", "1 "),
    (
        r"\b(?:a |the )?(?:clear |vast |overwhelming |large )?(?:majority|bulk) of\b",
        "more than half of",
    ),
    (rf"\bmost (?:of )?(?={_ITEM})", "more than half of "),
    (
        rf"\b(exactly )?(?:a |one )?(two|three|four|seven|nine)?[ -]?(half|third|quarter|fifth|"
        rf"tenth)s?(?= of\b| lower| higher| fewer| more| less| better| worse| (?:(?:the|its|their|"
        rf"all) )*(?:\w+ )?(?:{TASKS}|{ATTEMPTS})\b|(?<=half|.rds|ters)\s*(?:[^\w\s-]|$))",
        _fraction,
    ),
    (
        r"\b(about|nearly|almost|roughly|around|over|under|than) (?:a|one) "
        r"(third|quarter|fifth|half)\b(?! of\b| (?:attempt|time|run|try|place))",
        lambda m: f"{m[1]} {_FRACTIONS[m[2].lower()]:.1f}%",
    ),
    (  # four out of five is a share; 4 of 5 may be counts
        rf"\b((?!half\b)(?:{SPELT})) (?:out )?of (?:every )?({SPELT})(?= (?:[\w-]+ )?(?:{TASKS}|"
        rf"{ATTEMPTS})\b)",
        r"\1 in every \2",
    ),
    (rf"\b(?:one|an?) (?:second|extra|additional) (?:{ATTEMPTS}|chance)\b", "up to 2 attempts"),
    (
        r"\b(?:retry\w*|re-?running|trying again) once\b|\b(?:one|a single) retry\b",
        "up to 2 attempts",
    ),
    (
        r"\b(?:not|unable to|fail(?:s|ed)? to) (?:solve|pass|complete|resolve|crack|finish)d?s?"
        r"(?= (?:only |just |exactly )?\d)",
        "fails",
    ),
    (r"\bapiece\b", "each"),
    (r"\bexpected (?=(?:share|fraction|proportion|percentage|number|success|value)\b)", ""),
    (rf"\b({SPELT}|hundred)fold\b", r"\1 fold"),
    (r"\b(on|in) none\b(?! of)", r"\1 0 tasks"),
    (NUMBER_WORDS.pattern, spell),
    (  # the best of our 5 runs of A
        r"\b(best|highest|top|worst|lowest|weakest)((?: of| out of)(?: the| our| its| all| these)* "
        rf"\d+)\s+(⟦\w+⟧)\s+(?={ATTEMPTS}\b)",
        r"\3 \1\2 ",
    ),
    (
        r"\b(worst|best|lowest|highest)[- ]of[- ](\d+)(?=\s*[:=]|,? (?:was|is)\b)",
        r"\1 of \2 runs",
    ),
    (
        r"(\b(?:best|worst)\b[^;]*?\bthe |\b(?:best|worst) of\b[^;]*?[,(] ?(?:and )?)(best|worst)"
        r"(?: one)?,? (?:is |was |at )?(?=~?\d)",
        r"\1 \2 of runs ",
    ),
    (r"\b(mean|average|avg) (of|over) (\d+)(?=\s*[:=)])", r"\1 \2 \3 attempts"),
    (
        r"\bmajority(?: vote| voting)? (?:over|across|of|among) (?:its |the |all )*(\d+) "
        rf"{ATTEMPTS}\b",
        r"maj@\1",
    ),
    (
        rf"\bat least (\d+) (?:out )?of (?:the |its |all )*(\d+) {ATTEMPTS}"
        r"(?: pass\w*| succeed\w*)?",
        lambda m: f"maj@{m[2]}" if int(m[1]) == int(m[2]) // 2 + 1 else m[0],
    ),
    (
        r"(\b(?:all|every|always)\b[^.;]*?\b\d+) in some(?=\s*(?:[,;.]|and\b|but\b|$))",
        r"\1 in some attempts but not all",
    ),
    (r"\b(\d+) (?:only )?in (?:none|0 tasks)\b(?! of)", r"\1 are never solved"),
    (r"\b(\d+) in some of them\b", r"\1 are flaky"),
    (r"\b(are|were) (?:rock[- ])?(?:solid|reliable)\b", r"\1 always solved"),
    (r",?\s*\b(?:neither|not) always \w+,? (?:nor|or|but|and)(?: not)?(?: always| never)? \w+", ""),
    (
        r"\b(?:go(?:es)?|went|gets?|got|rises?|rose|climbs?|moves?|jumps?|shoots?) up to (?=~?\d)",
        "reaches ",
    ),
    (rf"\b(?:if|when) (\d+ {ATTEMPTS}) (?:are|is) (?:allowed|permitted|given|made)", r"given \1"),
    (r"(?<=\d) (?:extra|additional|more|further) (?=(?:percentage )?points?\b)", " "),
    (r"(?<=\d)(\.\d+) (?=(?:ahead|behind)\b)", r"\1 points "),
    (
        r"\b(?:at least (?:one|1)|any) failure(?: (?:occurs|happens|shows up|is seen|occurred))?",
        "fails at least once",
    ),
    (
        r"(⟦r\d+⟧)[^⟦\d%;.]*,? followed by\s+(⟦r\d+⟧)(?:,|\s|and|then|followed by)+(⟦r\d+⟧)"
        r"[^⟦\d%;.]*|\b(?:order|ranking|ranked?)\b[^⟦;.]*(⟦r\d+⟧)\W*(?:then |and )*(⟦r\d+⟧)\W*"
        r"(?:then |and )*(⟦r\d+⟧)",
        lambda m: _ranks(m),
    ),
    (
        rf"\bgiv(?:e|ing|en) (?:it |them |(⟦\w+⟧)\s+)(\d+ {ATTEMPTS})\b",
        lambda m: f"{m[1] or ''} given {m[2]}",
    ),
    (
        rf"\b(\d+) (?!fail|error|time|crash|except|refus|{TASKS})[a-z]+ in (\d+) (?={ATTEMPTS}\b)",
        lambda m: f"{m[1]} of {m[2]} " if int(m[2]) >= max(20, int(m[1])) else m[0],
    ),
    (
        r"\b(?:\d+|all|both) (?:out )?of (?:the |our )*\d+ (?=(?:agent|model|system|release)s\b)",
        "some ",
    ),
    (
        rf"\b(fail|pass|miss|solv)(\w*) (?:in |on )?(?:all|each)(?: of)?(?: its| the)? "
        rf"(\d+)(?: {ATTEMPTS})? (?=on (?:only |just |another )?\d)",
        r"\1\2 in all \3 attempts ",
    ),
    (  # between 17 and 23 of 40; 105, 120 and 108 of the 200 tasks
        rf"\b((?:between|from) \d+ (?:and|to) \d+|(?:\d+,? (?:and )?){{2,}}\d+)(?: [a-z]+)? "
        rf"(?:out )?of (?:the |its |all )*(\d+)(?: {TASKS})?\b",
        _shares_of,
    ),
    (rf"\bour ([\w-]+) (?={TASKS}\b)", lambda m: m[0] if is_known(m[1]) else "our "),
    (
        r"(\b(?:our|this|the same|the full|\d+-(?:task|problem|issue|question|instance))\b"
        r"[^.;,]{0,30}?) (?:sub|)(?:set|slice|split|sample)\b",
        r"\1 set",
    ),
    (
        r"\bin at least (?:one|1)(?: of (?:them|the \d+))?(?=\s*(?:[.,;)]|and\b|but\b|$))",
        "in at least one attempt",
    ),
    (
        r"\bfixed(?=\s*(?:[.,;)]|at least\b|by\b|in (?:all|every|each|any)\b|on the first\b|$))",
        "solved",
    ),
    (
        r"\b(?:all|each|every one)(?: of)?(?: the| its| our)? (\d+) runs (?=\w+ (?:in |within )?"
        r"(?:between|from)\b)",
        r"the \1 runs ",
    ),
    (
        rf"\b(?:across|in|over|out of|of) (?:the |all )*(\d+) ({ATTEMPTS}),? ([^.,;]*?"
        rf"(?:{PASSED}|fail\w*|work\w*)) (\d+) times\b",
        lambda m: f"{m[3]} {m[4]} of {m[1]} {m[2]}" if int(m[1]) >= int(m[4]) else m[0],
    ),
    (
        rf"\b(of (?:the |its |all |our )*\d+) ([\w-]+) (?=(?:{ATTEMPTS}|{TASKS})\b)",
        lambda m: m[0] if is_known(m[2]) else f"{m[1]} ",
    ),
    (r"^\W*(?:Changelog|Update|TL;?DR|Note|News|Highlights?|Release notes?)\b[^:.]{0,20}:", ""),
    (
        r"\b(?:captur|process|handl)(?:es|ed|e|ing)? (?=(?:about |only |just |~)*[\d.]+ ?"
        r"(?:%| of\b| out of\b))",
        "solves ",
    ),
    (r"\bwithout (?:an? )?errors?(?= (?:in )?(?:about |only |just |~)*[\d.]+ ?%)", "correctly"),
    (  # in the last of the four runs, in the second run
        rf"\b(in|on|of|at|from|to|than) (?:the|its) ({'|'.join(_ORDINALS)}|last|final)"
        r"(?: (?:one )?of (?:the |its |all |our )*(?:\d+ )?(?:runs|trials|rounds)| "
        r"(?:(?:nightly|single) )?(?:run|trial|round)s?\b)",
        lambda m: f"{m[1]} trial {_ORDINALS.get(m[2].lower(), 'last')}",
    ),
    (
        rf"(\btrial \w+\b[^;]*\b(?:in|on) )the ({'|'.join(_ORDINALS)}|last|final)(?: one)?\b",
        lambda m: f"{m[1]}trial {_ORDINALS.get(m[2].lower(), 'last')}",
    ),
    (r"\b(?:nightly|daily|weekly) (?=(?:runs?|trials?|scores?)\b)", ""),
    (r"\bsets? a new (?:high|record|best|mark)\b", "reaches the result"),
    (r"\bpunch(?:es)? (?:well |far )?above (?:its|their) weight,?", ""),
    (
        rf"\b(?:under|with|within|on|given) a (?:\w+ )?budget of (?=\d+ {ATTEMPTS}\b)",
        "given up to ",
    ),
    (rf"(\b(?:within|up to) \d+ {ATTEMPTS}\b[^.;%]*?) at least once\b", r"\1"),
    (r"(?<=\d),(?=\d{3}\b)(?!\d{3}\s?%)", ""),
    (r"(?<![\d.,\[(])(\d+),(\d{1,2})(?=\s?(?:%|per ?cent))|\b(0),(\d+)\b", r"\1\3.\2\4"),
    (
        rf"\b(\d+(?:\.\d+)?)k(?= (?:\w+ )?(?:{TASKS}|{ATTEMPTS}))",
        lambda m: str(int(float(m[1]) * 1000)),
    ),
    (r"\b(?:vs\.?|versus|as opposed to|as against)(?=\W)\\?", "vs"),
    (r"\b(?:compared|relative|in comparison|in contrast) (?:to|with)\b", "against"),
    (r"\b(?:i\.e|e\.g)\b\.?,?", " "),
    (r"\b(?:approx|al|cf|resp|Fig|Sec|Tab|no)\.", " "),
    (
        r"\s?(?:per ?cent(?:age)?[ -]points?|%[ -]points?|p\.p\.|(?<=\d)[ -]?p\.?p\.?(?!\w)|"
        r"\bpts?\b|-point\b)",
        " points",
    ),
    (r"(?<=\d)\s?(?:%|per ?cent\b)", "%"),
    (r"\bmore often than not\b", "more than 50% of attempts"),
    (rf"(?<=%) of (?:the|all|all (?:of )?(?:its|the)) (?:times?|{ATTEMPTS})\b", " of attempts"),
    (r"\b(?:nearly|almost|virtually|practically) (?:all|every)\b(?: of\b)?", ">=90% of"),
    (
        r"\b(?:about|roughly|approximately|around|nearly|almost|some|just (?:over|under)|"
        r"close to|circa|ca\.)\s+(?=[~\d.]*\d)|≈\s*|~\s*",
        "~",
    ),
    (r"~{2,}", "~"),
    (r"\b(?:tops?|topped|maxe[sd]|max(?:es)?) out at\b|\bplateaus? at\b", "reaches"),
    (  # a third of all failures is a change of their number
        r"\b(?:remov|eliminat|avoid|fix|prevent|eras|cut)\w* (~?[\d.]+%) of (?:(?:all|the|its|"
        r"those|our) )*(?:[\w-]+ )?(failures|errors)\b",
        r"cuts the number of \2 by \1",
    ),
    (r"\bclear(?:s|ed)? ~(?=[\d.]+%)", "solve >="),
    (
        r"\b(?:falls?|fell|drop(?:s|ped)?|dip(?:s|ped)?|goes|went|go|sinks?|sank) (?:below|under) "
        r"(?=~?[\d.]+%)",
        "is below ",
    ),
    (
        r"\b(?:rises?|rose|climb(?:s|ed)?|gets?|got|goes|went|go) (?:above|over|beyond|past) "
        r"(?=~?[\d.]+%)",
        "is above ",
    ),
    (r"\b(?:s\.e\.m?\.?|sem|s\.?e\.?(?= (?:of|over|across)))(?!\w)", "SE"),
    (r"\b(?:s\.d\.|stdev|std\.?(?: dev\.?)?)(?!\w)", "standard deviation"),
    (
        r"(?:\b(?:more than|over|above|at least|exceed(?:s|ed|ing)?|better than|greater than|"
        r"higher than|upwards of|no less than|surpass(?:es|ed)|tops|well over)|>=?|≥)"
        r"\s*~?(?=\d[\d.]*(?:%| points?\b))",
        ">=",
    ),
    (
        r"(?:\b(?:less than|under|below|at most|fewer than|lower than|worse than|up to|"
        r"no more than|within)|<=?|≤)\s*~?(?=\d[\d.]*(?:%| points?\b))",
        "<=",
    ),
)


def plain_number(text: str) -> str:
    """The text with numbers, units and bounds written in one way."""
    for pattern, new in _REWRITES:
        text = re.sub(pattern, new, text, flags=re.IGNORECASE)
    return text


# Comparisons of runs, which are tokens by now, written in one way.
_NONE_ELSE = (
    r"\b(?:none|neither) (?:of the (?:others?|rest|other \w+)|else)\b|"
    r"\bno other (?:agent|model|system|version|one)\b"
)
_THE_OTHERS = (
    r"\b(?:(?:both|all) (?:of )?)?the (?:others\b|other (?:two|three|four|\d)\b(?! (?:[\w-]+ )?"
    rf"(?:{TASKS}|{ATTEMPTS})\b)(?: (?:agents|models|systems|versions))?)"
)
_ONLY = (
    r"(?:\bonly\s+(?=⟦)|(?=⟦r\d+⟧\s+is the (?:only|sole)))(⟦r\d+⟧)(?! \()[^⟦\d,;%]*?\b"
    r"(?:above|over|more than|at least|exceed\w*|reach\w*|beyond|surpass\w*|clear\w*|pas[ts]\w*)\s+"
    rf"({NUMBER}\s?(?:%|per ?cent)[^,;.]*(?:\.\d[^,;.]*)?)"
)
_EXCEPT = r"(?:except|but|other than|apart from|besides)(?: for)?"
_OTHER_RUN = (
    r"\b(than|over|against|above|for|outperform\w*|beat\w*|surpass\w*|exceed\w*) (?:the|its|our|"
    r"any) (?:(?:immediate |direct )?predecessor|(?:(?:second|next)[- ])?(?:best|strongest|closest|"
    r"previous|prior|existing)(?: (?:previous|prior|existing|published|other|competing))* "
    r"(?:systems?|agents?|models?|methods?|baselines?|approach(?:es)?|competitors?))\b(?:'s)?"
)
# Several runs as one owner.
TWO = r"⟦r(\d+)⟧\s+(?:and|&)\s+⟦r(\d+)⟧"
SETS = (
    (rf"\b(?:both|each of)\s+{TWO}", r"⟦r\1+\2⟧"),
    (rf"{TWO}\s+(?:both|each)\b(?! (?:of )?(?:the |its |their )?(?:\d|{ATTEMPTS}))", r"⟦r\1+\2⟧"),
    (r"\bneither\s+⟦r(\d+)⟧\s+nor\s+⟦r(\d+)⟧", r"⟦r\1+\2⟧ not"),
)


_PLACE = r"\b(?:first|second|third|fourth|fifth|last|[1-5](?:st|nd|rd|th))\b"
_COMPARISONS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    # No run of it fell below 45%.
    (
        r"\b(?:no|not (?:a|one)(?: single)?) (?:single )?(?:run|seed|trial)s?\b(?: of)?"
        r"([^<>%]*?)(?:\bis )?(?=[<>]=)",
        r"across runs \1 never ",
    ),
    (
        rf"(⟦r\d+⟧[^⟦,;]*?{_PLACE})\s*(?:,\s*and\b|,|\band\b)\s*(?=⟦r\d+⟧[^⟦,;]*?{_PLACE})",
        r"\1 ; ",
    ),
    # Although A is above B, C is above A.
    (
        r"^\W*(?:even )?(?:although|though|while|whereas)\s+([^,;]*⟦r[^,;]*),\s+"
        r"(?=⟦r|(?:its?|the)\b)",
        r"\1 ; ",
    ),
    # The number of tasks that pass every time went from 6 to 20.
    (
        rf"((?:\b(?:number|count) of {TASKS}\b|\b{TASKS} (?:that|which)\b|^\W*{TASKS}\b)[^%.;]*?"
        r"\b(?:from|to)) (\d+),?( \(?(?:from|to)) (\d+)(?![\d.]*(?:\d|%| points))",
        r"\1 \2 tasks\3 \4 tasks",
    ),
    # On 26 of 45 tasks A is better than B.
    (
        rf"\bon ((?:only |just )?\d+(?: (?:out )?of (?:the |all )*\d+)?(?: {TASKS})?),?\s+"
        rf"((?:⟦r\d+⟧|it\b)[^,;]*?{POLARITY.pattern}[^,;]*?)(?=\s*(?:[,;]|\.?\s*$))",
        r"\2 on \1",
    ),
    # Of 400 attempts of A, 305 failed.
    (rf"\bof (\d+)\s+(⟦r\d+⟧)\s+(?={TASKS}|{ATTEMPTS})", r"of \2 \1 "),
    # Tasks that defeat a run.
    (
        r"\b(?:defeat|stump|elud|resist|baffl)\w*\s+(?:even\s+)?(⟦r\d+⟧)"
        r"(?: (?:completely|entirely))?",
        r"are never solved by \1",
    ),
    # As k grows from 1 to 5, pass@k rises to 92%.
    (
        r"^(.*?)\b(?:as|when) k (?:grows|increases|goes|rises|moves|varies)(?: from \d+)? to "
        r"(\d+),?",
        r"\1 k=\2 ",
    ),
    (r"\b(?:of|among) (?:the |all |our )+[2-9](?=\s*(?:[,.;:)]|$))", ""),
    # 81.3 (+37.2 over the baseline)
    (
        rf"(?<![\w.])([-+]{NUMBER})(?=\s*\)|\s+(?:over|vs|against|above|below|than)\s+(?:the\s+)?⟦r)",
        r"\1 points",
    ),
    (r"(⟦r\d+⟧)\s*[>≻]\s*(?=⟦r\d+⟧)", r"\1 is above "),
    (r"(⟦r\d+⟧)\s*[<≺]\s*(?=⟦r\d+⟧)", r"\1 is below "),
    # A lift of 17 points (56% to 73%): no interval, which would hold the lift.
    (
        rf"({NUMBER})( points?)\s*\(({NUMBER})%?\s*(?:to|→|->)\s*({NUMBER})%?\)",
        lambda m: (
            m[0]
            if float(m[3]) <= float(m[1]) <= float(m[4])
            else f"{m[1]}{m[2]} from {m[3]}% to {m[4]}%"
        ),
    ),
    # Doubles (44% to 81%): no interval.
    (
        rf"(\b(?:doubl|tripl|quadrupl|halv)\w+\b[^()]*|{POLARITY.pattern}[^()⟦\d]*)"
        rf"\(({NUMBER}%?)\s*(?:to|→|->)\s*({NUMBER}%?)\)",
        lambda match: f"{match[1]} from {match[match.re.groups - 1]} to {match[match.re.groups]}",
    ),
)
_LIST = r"(?:\s*(?:,\s*and|,|and|&)\s*)"
_NUMBERS = rf"[-+]?{NUMBER}%?(?:{_LIST}[-+]?{NUMBER}%?)+"
_NAMES = rf"⟦r\d+⟧(?:{_LIST}⟦r\d+⟧)+"


def _one_by_one(text: str) -> str:
    """A comparison with several runs as one with each: beats A and B by 3 and 5 points."""
    ends = r"(\s*(?:points?|x|times)\b)?(?:,? respectively)?"
    match = re.search(rf"({_NAMES})([^⟦;]*?)({_NUMBERS}){ends}", text)
    chain = re.search(r"⟦r\d+⟧(?: is (?:above|below)\s+⟦r\d+⟧){2,}", text)
    if chain:
        names = re.findall(r"⟦r\d+⟧", chain[0])
        signs = re.findall(r"is \w+", chain[0])
        parts = [f"{a} {sign} {b}" for a, sign, b in zip(names, signs, names[1:], strict=False)]
        rest = text[: chain.start()], text[chain.end() :]
        return " ; ".join(f"{rest[0]}{part}{rest[1]}" for part in parts)
    if match is None or not OBJECT.search(text[: match.start()]):
        return text
    names = re.findall(r"⟦r\d+⟧", match[1])
    numbers = re.findall(rf"[-+]?{NUMBER}%?", match[3])
    if len(names) != len(numbers):
        return text
    before, after = text[: match.start()], text[match.end() :]
    parts = [
        f"{before}{name}{match[2]}{number}{match[4] or ''}{after}"
        for name, number in zip(names, numbers, strict=True)
    ]
    return " ; ".join(parts)


def other_runs(text: str, runs: int) -> str:
    """The text with the predecessor, and all but one run, as tokens.

    The predecessor of the second of two runs is the first; of others no source has one.
    """
    other = "0" if runs == 2 and set(re.findall(r"⟦r(\d+)⟧", text)) == {"1"} else "?"
    text = re.sub(_OTHER_RUN, rf"\1 ⟦r{other}⟧ ", text, flags=re.IGNORECASE)
    named = set(re.findall(r"⟦r(\d+)⟧", text))
    if len(named) == 1 and runs > 2:
        rest = f"⟦r{'+'.join(str(run) for run in range(runs) if str(run) not in named)}⟧"
        text = re.sub(_NONE_ELSE, f" {rest} not ", text, flags=re.IGNORECASE)
        text = re.sub(_THE_OTHERS, f" {rest} ", text, flags=re.IGNORECASE)
        text = re.sub(_ONLY, rf"\1 is above \2 ; {rest} is below \2", text, flags=re.IGNORECASE)

    def all_but(match: re.Match[str]) -> str:
        return f" ⟦r{'+'.join(str(run) for run in range(runs) if run != int(match[1]))}⟧ "

    return re.sub(rf"⟦r\*⟧\s+{_EXCEPT}\s+(?:the\s+)?⟦r(\d+)⟧", all_but, text, flags=re.IGNORECASE)


def plain_comparison(text: str) -> str:
    """The text with comparisons of runs, which are tokens by now, written in one way."""
    for pattern, new in _COMPARISONS:
        text = re.sub(pattern, new, text, flags=re.IGNORECASE)
    return _one_by_one(text)
