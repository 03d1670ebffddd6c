"""Phrases that name the attempts a share is about: any of them, all of them, one of them."""

from __future__ import annotations

import re

from passhat.reporting.review.statements import ATTEMPTS, INTEGER, NUMBER, PASSED, TASKS

__all__ = ["BOUNDS", "EARLY", "NEVER", "PROTOCOLS", "SCORES", "SPREADS"]

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
        rf"\b(?:worst|lowest|minimum|min) (?:{_OF_RUNS})|\b(?:worst|lowest[ -]scoring){_ONE_RUN}",
        ":worst",
    ),
    (r"\b(?:best|highest)(?=\s*\()", ":best"),
    (r"\b(?:worst|lowest)(?=\s*\()", ":worst"),
    (rf"\bmedian (?:{_OF_RUNS})|\bmedian{_ONE_RUN}", ":median"),
    (
        rf"\b(?:on |in |at |by )?(?:its |the |their )?(?:very )?first[ -](?:{_ATT}|go|time)\b",
        ":first",
    ),
)
# Any of K ("@"), within K ("<", which of failures is none of K), all of K ("^"); "n" for all that
# were made; a colon for one run of the benchmark among all.
_SUCCESSES = r"(?:success(?:es)?|passes|wins|solves|correct (?:answers|solutions))"
_AMONG = r"(?:in|of|out of|within|over|across|with|from|after)"
PROTOCOLS: tuple[tuple[str, str], ...] = (
    (
        rf"\b(?:in |on |by )?at least (?:once|1|one)(?: \w+)? {_AMONG} "
        rf"(?:the |its |their |all |any of )*(?P<k>{_INT})(?: {_ATT})?\b",
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
        rf"\bpass(?:es|ed)? (?P<k8>{_INT})/(?P=k8)\b|"
        rf"\b(?:in |on |over |for |demand |require |need )(?P<k>{_INT})(?: times)?"
        rf" (?:out )?of (?P=k)\b(?! {_TASK})(?: {_ATT})?"
        rf"|\ball (?P<k7>{_INT}) (?:out )?of (?P=k7)\b(?! {_TASK})"
        rf"|\b(?:all )?(?P<k5>{_INT})(?: times)? (?:out )?of (?P=k5) {_ATT}|\b(?P<k6>{_INT}) times "
        rf"(?:out )?of (?P=k6)\b"
        rf"|\b(?P<k2>{_INT}) (?:independent |\w+ )?{_ATT} (?:all|both) (?=succeed|pass)"
        rf"|\b(?P<k3>{_INT})(?: {_ATT}| {_SUCCESSES})?[ -]in[ -]a[ -]row\b"
        rf"|\b(?P<k4>{_INT}) (?:consecutive|straight|successive) (?:{_ATT}|{_SUCCESSES})",
        "^",
    ),
    (
        rf"\b(?:in |on |when |if |over |across )?(?:all|each)(?: of)?(?: the| its| their)? "
        rf"(?P<k>{_INT})"
        rf"(?: (?:independent )?{_ATT}| must pass| pass\b| succeed)(?: (?:must )?(?:pass|"
        rf"succeed))?",
        "^",
    ),
    (
        rf"\b(?:in |on )?both (?:times|of (?:its|the) )?(?:{_ATT}|2 {_ATT})\b|\b(?:twice|2 times) "
        rf"in a row\b|"
        rf"\b2 {_ATT}(?= (?:of [^,;]*? )?both (?:pass|succeed))",
        "^2",
    ),
    (
        rf"\b(?:given|with|within|in|after|using|allowed|has|gets?|(?:if you )?let it (?:try|"
        rf"run))(?: an?)? "
        rf"(?:budget of |up to |at most |any of )?(?:its |the )?(?P<k>{_INT}) {_ATT}\b"
        rf"(?! (?:each|per|for each|on|in total|of))"
        rf"|\b(?:if|when) (?:it|they|⟦r\d+⟧) (?:may|can|is allowed to) try (?P<k2>{_INT}) times",
        "<",
    ),
    (
        rf"\b(?:given |giving |with |within |using |allow\w+ |in |it )?(?:⟦r\d+⟧\s+)?"
        rf"(?:a budget of |up to |at most )+(?P<k>{_INT}) {_ATT}\b"
        rf"(?: (?:each|per {_TASK}|for each {_TASK}))?",
        "<",
    ),
    (
        rf"\b(?:in |on )?every (?:single )?(?:time|{_ATT})\b|\b(?:in |on )?all (?:of )?(?:its |the "
        rf"|"
        r"their )?(?:attempts|runs|tries|trials|repetitions)\b|\bin each (?:attempt|run|try|"
        r"trial)\b|"
        r"\beach time\b|\balways\b|\bconsistently\b|\breliably\b|\bwithout fail\b",
        "^n",
    ),
    (
        rf"\b(?:in |on |of |with |by )?(?:a |one |the |its )?(?:single|individual)[ -]{_ATT}\b|"
        rf"\b(?:in|with|on|of) (?:only |just )?(?:one|1) (?:{_ATT}|go)\b|"
        r"\b(?:per|each)[ -](?:attempt|try|run|trial|sample)\b|\bone-try\b|\bon average\b|"
        r"\bmean success\b",
        "^1",
    ),
)
NEVER = rf"\bnever (?:once |even |been |ever )?(?:gets?|got|works?|{PASSED})\b(?: right)?"
EARLY = 4 + len(_RUNS)
"""The first protocols hold a count that is no share: at least one of its six attempts."""
BOUNDS = re.compile(r"\b(?:intervals?|CIs?|confidence|bounds?)\b", re.IGNORECASE)
# The worst and the best of single runs, or the distance between them.
_VARY = r"(?:rang\w+|span\w*|var(?:y|ies|ied|ying)|fluctuat\w+|differ\w*|spread\w*|swing\w*)"
SPREADS = (
    (
        rf"\b(?:{_VARY} (?:anywhere )?(?:from |between )?|(?:scor\w+|lies?|lay|falls?|stays?|"
        rf"stayed|lands?|is|are|was|were|reach\w*|solv\w+) (?:anywhere )?between )({NUMBER})%?"
        rf"\s*(?:to|and|-|–)\s*({NUMBER})%?",
        (("worst", ""), ("best", "")),
    ),
    (
        rf"\b(?:stay\w*|remain\w*|scor\w+|reach\w*|is|was)\s+>=({NUMBER})%"
        rf"[^,;%]{{0,40}}?\b(?:in|on|across) (?:every|each|all)(?: of)?"
        r"(?: (?:the|its|\d+))* (?:run|seed|trial)s?\b",
        (("worst", ">="),),
    ),
    (
        rf"\bstandard deviation\b[^%;]*?(?:is|of|was|=|:)\s*({NUMBER})(?: points?\b|%)",
        (("deviation", ""),),
    ),
    (rf"\b(?:never|not) (?:is |was |once )?<=({NUMBER})%", (("worst", ">="),)),
    (rf"\b(?:never|not) (?:is |was |once )?>=({NUMBER})%", (("best", "<="),)),
    (rf"\b{_VARY}(?: \w+)? by (?:only |just )?([<>]?=?\s?{NUMBER}) points?\b", (("spread", ""),)),
)
SCORES = rf"(?<![\w.])(?:{NUMBER}%?,?\s+(?:and\s+)?){{2,}}{NUMBER}%?"
"""Scores of single runs, one after the other."""
