"""Words of claims by their role, and the statements that a claim is made of."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Context", "Difference", "Share", "Size", "Statement", "Unread"]


@dataclass(frozen=True, slots=True)
class Share:
    """A share of passes (or of failures) that the text gives to runs.

    ``owners`` is empty where no run is named; ``guessed`` marks owners that were inferred.
    ``metric`` is empty where the text names none, and has ``n`` for all attempts of the data.
    """

    text: str
    low: float
    high: float
    step: float
    relation: str = "="
    owners: tuple[int, ...] = ()
    guessed: bool = False
    metric: str = ""
    failing: bool = False
    ends: tuple[float, float] | None = None
    error: float | None = None
    counted: str = ""
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class Difference:
    """A comparison: ``sign`` +1 where the subject is called better, -1 worse, 0 not said.

    ``kind`` is "better", "equal" or "denied"; ``points``, ``percent`` and ``ratio`` are its size.
    """

    text: str
    subject: int | None
    other: int | None
    sign: int
    kind: str = "better"
    metric: str = ""
    failing: bool = False
    points: float | None = None
    percent: float | None = None
    ratio: float | None = None
    step: float = 1.0
    relation: str = "="
    ends: tuple[float, float] | None = None
    population: str = ""
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class Size:
    """A number of tasks or attempts; ``per_task`` excludes the total of attempts."""

    text: str
    count: int
    tasks: bool
    attempts: bool
    per_task: bool = False


@dataclass(frozen=True, slots=True)
class Unread:
    """A part of the sentence that cannot be checked, and why; ``blocks`` the rest of it, too."""

    text: str
    reason: str
    blocks: bool = False


@dataclass(slots=True)
class Context:
    """Parts of an earlier clause that a later one of the same sentence leaves out."""

    subject: int | None = None
    other: int | None = None
    metric: str = ""
    failing: bool = False


Statement = Share | Difference | Size | Unread

_UP = (
    r"beat\w*|outperform\w*|outscor\w*|surpass\w*|exceed\w*|lead(?:s|ing)?|led|wins?|won|improv\w+|"
    r"better|higher|greater|above|ahead|stronger|superior|advantage|best|strongest|edges?|"
    r"top(?:s|ped)|"
    r"more (?:reliable|capable|accurate|consistent|successful|often)|ranks? (?:first|1st|top)|"
    r"dominat\w+"
)
_DOWN = (
    r"trail\w*|los(?:es?|t|ing)|lag\w*|behind|worse|lower|below|fewer|weaker|inferior|"
    r"underperform\w*|"
    r"less (?:reliable|capable|accurate|consistent|successful|often)|regress\w*|deficit|weakest|"
    r"worst|"
    r"short of|ranks? (?:second|2nd|last)|outclassed"
)
_RISES = (
    r"rais\w+|rises?|rose|risen|rising|increas\w+|gain(?:s|ed|ing)?|climb\w*|lift(?:s|ed|ing)?|"
    r"boost\w*|adds?|"
    r"added|grows?|grew|jump\w*|up\b|went up|goes up|picks? up"
)
_FALLS = (
    r"drop\w*|falls?|fell|fallen|decreas\w+|declin\w+|down\b|cuts?|reduc\w+|shrink\w*|slip\w*|"
    r"sinks?|sank|"
    r"costs?|sheds?|lowers?|lowered|shav\w+|degrad\w+|went down"
)
POLARITY = re.compile(
    rf"\b(?:(?P<up>{_UP})|(?P<down>{_DOWN})|(?P<rise>{_RISES})|(?P<fall>{_FALLS}))\b", re.IGNORECASE
)
EQUAL = re.compile(
    r"\b(?:no (?:\w+ )?difference|(?:does|do) not differ|identical(?:ly)?|on par|indistinguishable|"
    r"equal(?:ly|s)?\b|equivalent|tied?\b|the same (?:as|accuracy|pass|success|share|reliab\w+)|"
    r"as (?:good|well|reliable|capable|accurate|often) as|match(?:es|ed)\b|"
    r"within (?:the )?noise|perform the same)",
    re.IGNORECASE,
)
DENIAL = re.compile(
    r"(?:\bnot|n't|\bno|\bnever|\bcannot|\bfail(?:s|ed)? to|\bneither|\bwithout|"
    r"\bnor)\s+(?:\w+\s+){0,2}$",
    re.IGNORECASE,
)
FAIL = re.compile(
    r"\b(?:fail(?:s|ed|ure|ures|ing)?|errors?|wrong|unsolved|incorrect|never (?:\w+ed|passes|"
    r"solves|succeeds))\b",
    re.IGNORECASE,
)
PASS = re.compile(
    r"\b(?:pass(?:es|ed|ing)?|solv\w+|succe\w+|accura\w+|resol\w+|complet\w+|correct\w*|right|"
    r"scor\w+|"
    r"reliab\w+|cracks?|finish\w+|consisten\w+|perfect|state[- ]of[- ]the[- ]art)\b",
    re.IGNORECASE,
)
OTHER = re.compile(
    r"\b(?:latenc\w+|costs?|costing|pric\w+|cheaper|faster|slower|quicker|speed\w*|tokens?|time|"
    r"seconds|minutes|"
    r"budget|memory|agreement|kappa|calls|steps|turns|length|usage|traffic|users|expensive|"
    r"smaller|larger|"
    r"throughput|requests|energy|coverage|spend\w*|need(?:s|ed)?|require\w*|involve\w*|"
    r"contain\w*|questions? are)\b",
    re.IGNORECASE,
)
GOAL = re.compile(
    r"\b(?:goals?|targets?|aim(?:s|ed|ing)?|thresholds?|objectives?|expect\w*|hope\w*|plan(?:s|"
    r"ned)?|bar\b|"
    r"require(?:d|ment)|random|guess\w*|chance|humans?|would|should|could|might|may|promis\w+|"
    r"own (?:paper|report|blog)|forecast\w*|predict\w*|hypothe\w+|if)\b",
    re.IGNORECASE,
)
SUBSET = re.compile(
    r"\b(?:subset|slice|split|categor(?:y|ies)|portion|domain|when restricted to)\b|"
    r"\b(?:hard(?:er|est)?|easy|easiest|medium|difficult|long|short|multi-\w+) (?:tasks|"
    r"problems|questions|ones)\b|"
    r"\b(?:airline|retail|telecom)\b",
    re.IGNORECASE,
)
SINGLE_TASK = re.compile(
    r"\bon (?:every|any|each|all (?:the )?(?:⟦s\d+⟧|\d+ )?)(?: of the)?(?: single)? ?(?:tasks?|"
    r"problems?)?\b|"
    r"\b(?:median|worst|best|average|hardest|every|any) task\b|\bper[- ]task\b|\btask by task\b",
    re.IGNORECASE,
)
LIGHT = re.compile(
    r"(?:[\s(:=,\[\"~]|⟦[im]\w+⟧|\b(?:is|are|was|were|has|have|had|with|at|of|to|an?|the|its?|only|just|now|"
    r"still|even|reach\w*|achiev\w+|attain\w*|obtain\w*|gets?|got|scor\w+|hits?|manag\w+|sits?|"
    r"stands?|lands?|posts?|"
    r"record\w*|comes?|came|in|on|deliver\w*|show\w*|yield\w*|gives?|follow\w*|ends?|lies|lay|"
    r"run|agent|model|"
    r"succeed\w*|solv\w+|pass\w*|resolv\w+|complet\w+|rate|share|success|first|second|ranks?|"
    r"rising|rose|rises|up|"
    r"for|result|state-of-the-art|new|respectively|and|new tasks|overall|total|drops?|fell|"
    r"falls|averag\w+)\b)*",
    re.IGNORECASE,
)
TOKEN = re.compile(r"⟦([a-z])(\d+|\*|\?)⟧")
CLAUSE = re.compile(
    r"\s*;\s*|,?\s+(?:while|whereas|although|though|yet|but|even as)\s+|\s+[—–]\s+", re.IGNORECASE
)
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[^a-z\s])|(?<=[.!?])\s+(?=[a-z][\w-]* )|\n")
OBJECT = re.compile(
    r"(?:\b(?:than|over|vs|against|behind|ahead of|above|below|short of|on par with|as|"
    r"(?:los\w+|lost|inferior|superior|second|close|identical|equal|equivalent) to|"
    r"improv\w* (?:up)?on|from|"
    r"(?:beat|outperform|outscor|surpass|exceed|top|lead|trail|lag|underperform|edge|match|"
    r"dominat|led)\w*"
    r"(?: out| behind| with)?))"
    r"\s+(?:both |that of |those of |the |agent |model |baseline )*$",
    re.IGNORECASE,
)
NAME = r"⟦r(\d+|\*|\?)⟧"
FOR = re.compile(
    rf"(?:[^⟦,;(]|⟦[mis]\d+⟧)*?\b(?:for|by|with|using)\s+(?:the |model |agent )*{NAME}"
    rf"|\s*(?:of|in|from|\()\s*(?:the |model |agent )*{NAME}"
)
OWN_VALUE = re.compile(
    r"\s*(?:\(|:|,)?\s*(?:at|is|has|only|with)?\s*⟦v\d+⟧(?!\s*(?:for|with|by)\s)"
)
BETWEEN_VALUES = re.compile(
    r"\s*(?:⟦[im]\d+⟧|%|\))*\s*,?\s*(?:vs|against|→|->|to|and|/|or|,)\s*\(?\s*"
)
ATTEMPTS_AFTER = re.compile(
    r"\s*of (?:the |its |all |their |⟦r\d+⟧|\s)*(?:\w+ )?(?:⟦s\d+⟧|attempts|tries|trials|runs|"
    r"samples)"
)
RATE = re.compile(
    r"\b(?:accura\w+|(?:success|pass|solve|resolve|resolution|completion|failure|fail|error|"
    r"win)[ -]rates?|"
    r"success share|average)\b",
    re.IGNORECASE,
)
CHANGE_AFTER = re.compile(
    r"\s*(?:relative|better|higher|lower|worse|more|fewer|less|improvement|increase|reduction|"
    r"drop|gain|decrease|"
    r"decline|uplift)\b",
    re.IGNORECASE,
)
COMPARATIVE = re.compile(
    r"\s*(?!(?:high|low|great|bett|ov|und|aft|oth|wheth|p|nev|howev|rath|ev|answ|numb|tick|ord|"
    r"hard)er\b)\w+er\b"
)
SCALAR = re.compile(
    r"higher|greater|lower|fewer|above|below|more often|less often|exceed|surpass|top",
    re.IGNORECASE,
)
GAP_NOUN = re.compile(r"\b(?:gap|difference|spread|margin|apart|differ)\b", re.IGNORECASE)
FROM_TO = (
    re.compile(r"\bfrom\s+⟦v(?P<a>\d+)⟧(?:(?!⟦v)[^;])*?\bto\s+(?:only |just )?⟦v(?P<b>\d+)⟧"),
    re.compile(r"⟦v(?P<a>\d+)⟧\s*(?:→|->)\s*⟦v(?P<b>\d+)⟧"),
    re.compile(
        r"⟦v(?P<b>\d+)⟧(?:(?!⟦v)[^;])*?(?:\bfrom|\(was|\bwas|previously|"
        r"before it was)\s+⟦v(?P<a>\d+)⟧"
    ),
)
