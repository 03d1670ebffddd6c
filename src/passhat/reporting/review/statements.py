"""Words and numbers of claims by their role, and the statements that a claim is made of."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

__all__ = [
    "ATTEMPTS",
    "BENCHMARK",
    "INTEGER",
    "METRIC",
    "NUMBER",
    "NUMBER_WORDS",
    "PASSED",
    "SPELT",
    "TASKS",
    "UNITS",
    "Context",
    "Difference",
    "Place",
    "Share",
    "Size",
    "Statement",
    "TaskCount",
    "Unread",
    "is_known",
    "spell",
    "unknown_words",
]

NUMBER = r"(?:\d+(?:\.\d+)?|\.\d+)"
INTEGER = r"\d+"
ATTEMPTS = (
    r"(?:attempts?|tries|try|trials?|runs?|samples?|rollouts?|seeds?|repeats?|repetitions?|"
    r"generations?|completions?|episodes?|shots?|chances|times|passes|goes|reruns?|rounds?)"
)
TASKS = (
    r"(?:tasks?|problems?|questions?|issues?|instances?|examples?|items?|prompts?|cases?|"
    r"tickets?|puzzles?|exercises?|scenarios?|challenges?|jobs|requests?|bugs?|queries|query)"
)
PASSED = (
    r"(?:pass|solv|succe|complet|resol|crack|finish|right|correct|won|answer|clos|clear|handl)\w*"
)


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
    spread: str = ""
    """What ``error`` is: "se", "sd", "ci" (half an interval), or empty where it is not said."""
    counted: str = ""
    doubt: str = ""
    unsure: str = ""
    """A word of the clause that was not understood: without it the number may be another one."""
    elsewhere: tuple[str, ...] = ()
    """The metrics of sentences before, which a share without a metric may be of."""
    total: int = 0
    """The M of "N of M": where all tasks are M, words beside it name no part of them."""
    count: int | None = None
    """A number of tasks whose total the text leaves to the data."""
    others: tuple[tuple[tuple[int, ...], str], ...] = ()
    """Runs and metrics that the text may mean just as well."""


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
    unsure: str = ""
    """Why the two sides may be the other way round."""
    is_relative: bool = False
    counted: str = ""
    """What ``points`` counts where it is no number of points: "task" or "attempt"."""
    share: float = 0.0
    """The share of the tasks on which the subject is ahead, for the kind "tasks"."""
    count: int | None = None
    """Their number, where the text gives no total."""
    against: str = ""
    """The metric that ``metric`` is compared with, where both are of the subject."""
    p_value: tuple[str, float, str] | None = None
    """Its sign, its value, and the test ("sign", "mcnemar") where it is named."""


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a run among all: 1 is the best, -1 the last."""

    text: str
    run: int
    place: int
    metric: str = ""
    failing: bool = False


@dataclass(frozen=True, slots=True)
class Size:
    """A number of tasks or attempts; ``per_task`` excludes the total of attempts.

    One that is not certain may count a part of them.
    """

    text: str
    count: int
    tasks: bool
    attempts: bool
    per_task: bool = False
    is_certain: bool = True


@dataclass(frozen=True, slots=True)
class TaskCount:
    """How often a single task passes; ``runs`` are two for the kinds "ahead" and "behind".

    Other kinds are "none", "any", "some", "all", "solved", "count" and "share" (in percent).
    """

    text: str
    runs: tuple[int, ...]
    task: str
    kind: str
    count: float = 0.0
    total: int | None = None
    failing: bool = False
    relation: str = "="
    unsure: str = ""


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
    values: tuple[int, ...] = ()


BENCHMARK = (
    r"(?:SWE-?bench|HumanEval|MBPP|GSM-?8K|MATH|AIME|GPQA|MMLU|HLE|SimpleQA|IFEval|AgentDojo|"
    r"WebArena|OSWorld|GAIA|BFCL|Aider|BrowseComp|CRUXEval|DS-1000|APPS|Spider|BIRD|ARC-|"
    r"[\wτ-]*-?[Bb]ench(?!\w)|[A-Z]\w*Eval)"
)

METRIC = re.compile(
    r"(?<![\w@^])(g-?pass|pass|maj|cons|avg|mean|best|worst)\s?([@^])\s?\{?(\d+|k\b|"
    r"n\b)?\}?(?::0?\.\d+)?",
    re.IGNORECASE,
)
Statement = Share | Difference | Place | Size | TaskCount | Unread

_UP = (
    r"beat\w*|outperform\w*|outscor\w*|surpass\w*|exceed\w*|lead(?:s|ing)?|led|wins?|won|improv\w+|"
    r"better|higher|greater|above|ahead|stronger|superior|advantage|best|strongest|edges?|top(?:s|"
    r"ped)|more (?:reliable|capable|accurate|consistent|successful|often|(?:tasks|problems|"
    r"questions|issues|attempts|tickets|cases)\b(?! fail))|ranks? (?:first|1st|top)|dominat\w+|"
    r"crush\w*|eclips\w*|trounc\w*|overt(?:ak|ook)\w*|outclass\w*|outd[io]\w*|outpac\w*|outrank\w*|"
    r"comes? out (?:on top|ahead)|on top|worth|most (?:reliable|capable|accurate|consistent|"
    r"successful)"
)
_DOWN = (
    r"trail\w*|los(?:es?|t|ing)|lag\w*|behind|worse|lower|below|fewer|weaker|inferior|"
    r"underperform\w*|(?:less|least) (?:reliable|capable|accurate|consistent|successful|often)|"
    r"regress\w*|deficit|weakest|worst|short of|ranks? (?:second|2nd|last)"
)
_RISES = (
    r"rais\w+|rises?|rose|risen|rising|increas\w+|gain(?:s|ed|ing)?|climb\w*|lift(?:s|ed|ing)?|"
    r"boost\w*|adds?|helps?|helped|"
    r"added|buys?|bought|grows?|grew|jump\w*|up\b|went up|goes up|picks? up"
)
_FALLS = (
    r"drop\w*|falls?|fell|fallen|decreas\w+|declin\w+|down\b|cuts?|slash\w*|trim\w*|reduc\w+|"
    r"shr[iau]nk\w*|slip\w*|sinks?|sank|costs?|decay\w*|deteriorat\w*|worsen\w*|hurts?|harms?|"
    r"suffer\w*|sheds?|lowers?|lowered|shav\w+|degrad\w+|went down"
)
POLARITY = re.compile(
    rf"\b(?:(?P<up>{_UP})|(?P<down>{_DOWN})|(?P<rise>{_RISES})|(?P<fall>{_FALLS}))\b", re.IGNORECASE
)
UNSETTLED = re.compile(
    r"\b(?:no|not(?: a)?|nor) (?:\w+ )?(?:statistical(?:ly)? )?significant(?:ly)?(?: difference| "
    r"better| worse)?|"
    r"\bindistinguishable|\bwithin (?:the )?noise|\bnot (?:be )?(?:told apart|distinguish\w*)|"
    r"\b(?:may|might|could)(?: \w+)? be (?:by |due to |just )?(?:chance|noise)|\binconclusive\b",
    re.IGNORECASE,
)
EQUAL = re.compile(
    r"\b(?:no (?:\w+ )?difference|(?:does|do) not differ|identical(?:ly)?|on par|equal(?:ly|s)?\b|"
    r"equivalent|tied?\b|the same (?:as|number|accuracy|pass|success|share|reliab\w+)|as (?:good|"
    r"well|reliable|capable|accurate|often) as|match(?:es|ed)\b|perform the same)",
    re.IGNORECASE,
)
DENIAL = re.compile(
    r"(?:\bnot|n't|\bno|\bnever|\bcannot|\bfail(?:s|ed)? to|\bneither|\bwithout|\bnor)\s+"
    r"(?!only\b)(?:(?!but\b|and\b)(?:\w+|⟦\w+⟧)\s+){0,3}$",
    re.IGNORECASE,
)
MORE = re.compile(
    r"\b(?:another|further|additional|extra|gain(?:s|ed)?|adds?|added|los(?:es?|t))\s*$"
)
"""Words before a number that make it a change."""
NOT_ALWAYS = re.compile(r"\bnot\s+(?:\w+ly|always|everywhere)\s+$", re.IGNORECASE)
"""Not uniformly better: it may be better."""
FAIL = re.compile(
    r"\b(?:fail(?:s|ed|ure|ures|ing)?|(?<!standard )errors?|wrong|unsolved|incorrect\w*|"
    r"miss(?:es|ed)|unresolved|"
    r"never (?:(?:once|even|been) )?(?:\w+ed|pass(?:es)?|solves?|succeeds?|gets?|works?))\b",
    re.IGNORECASE,
)
PASS = re.compile(
    r"\b(?:pass(?:es|ed|ing)?|solv\w+|succe\w+|accura\w+|resol\w+|complet\w+|correct\w*|right|"
    r"scor\w+|reliab\w+|cracks?|cracked|finish\w+|consisten\w+|perfect|state[- ]of[- ]the[- ]art|"
    r"answer(?:s|ed)|clos(?:es|ed)|clear(?:s|ed))\b",
    re.IGNORECASE,
)
SCORED = re.compile(
    rf"{BENCHMARK}|\b(?:[Ww]e|[Ii]t|agent|model|system)\s+(?:now )?"
    r"(?:reach|achiev|attain|hit|get|got)\w*\b",
)
OTHER = re.compile(
    r"\b(?:latenc\w+|costs?|costing|pric\w+|cheaper|faster|slower|quicker|speed\w*|tokens?|"
    r"(?:response |run|wall[- ]clock )time|seconds|minutes|budget|memory|(?:test|code|line|"
    r"branch) coverage|utili[sz]ation|uptime|agreement|kappa|calls|steps|turns|length|usage|"
    r"traffic|users|expensive|VRAM|throughput|energy|spend\w*|need(?:s|ed)?|require\w*|involve\w*|"
    r"contain\w*|questions? are)\b",
    re.IGNORECASE,
)
GOAL = re.compile(
    r"\b(?:goals?|targets?|aim(?:s|ed|ing)?|thresholds?|objectives?|expect\w*|hope\w*|plan(?:s|"
    r"ned)?|bar\b|require(?:d|ment)|random|guess\w*|by chance|chance level|humans?|would|should|"
    r"could|might|may|promis\w+|own (?:paper|report|blog)|forecast\w*|predict\w*|hypothe\w+|if)\b",
    re.IGNORECASE,
)
SUBSET = re.compile(
    r"\b(?:subset|slice|split|categor(?:y|ies)|portion|domain|when restricted to)\b|"
    r"\b(?:hard(?:er|est)?|easy|easiest|medium|difficult|long|short|multi-\w+) (?:tasks|problems|"
    r"questions|ones)\b|\b(?:in|on) (?:airline|retail|telecom)\b",
    re.IGNORECASE,
)
SINGLE_TASK = re.compile(
    r"\bon (?:every|any|each|all (?:the )?(?:⟦s\d+⟧|\d+ )?)(?: of the)?(?: single)? ?(?:tasks?|"
    r"problems?)?\b|"
    r"\b(?:median|worst|best|average|hardest|every|any) task\b|\bper[- ]task\b|\btask by task\b",
    re.IGNORECASE,
)
TOKEN = re.compile(r"⟦([a-z])(\d+(?:\+\d+)*|\*|\?)⟧")
CLAUSE = re.compile(
    r"\s*;\s*|,?\s+(?:while|whereas|although|though|yet|but|even as|until)\s+|\s+[—–]\s+",
    re.IGNORECASE,
)
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[^a-z\s])|(?<=[.!?])\s+(?=[a-z][\w-]* )|\n")
OBJECT = re.compile(
    r"(?:⟦c\d+⟧(?:\s+(?:⟦m\d+⟧|[\w-]+))*?\s+of|\b(?:than|over|vs|against|behind|ahead of|above|"
    r"below|short of|on par with|as|(?:los\w+|lost|inferior|superior|second|close|identical|equal|"
    r"equivalent) to|improv\w* (?:up)?on|from|(?:beat|outperform|outscor|surpass|exceed|top|lead|"
    r"trail|lag|underperform|edge|match|dominat|led|tak|took|bring|brought|push)\w*(?: out| "
    r"behind| with)?))\s+(?:both |that of |those of |the |agent |model |baseline )*$",
    re.IGNORECASE,
)
NAME = r"⟦r(\d+(?:\+\d+)*|\*|\?)⟧"
_KIND = (
    r"(?:(?:the|our|its|their|model|agent|base|baseline|original|older?|previous|new|newer|smaller|"
    r"larger|bigger|stronger|weaker|sibling|sister|predecessor|variant|version|vanilla|release)\s+)*"
)
FOR = re.compile(
    rf"(?:[^⟦,;(]|⟦[mis]\d+⟧)*?\b(?:for|by|with|using|under)\s+{_KIND}{NAME}|\s*(?:of|in|from|"
    rf"\()\s*{_KIND}{NAME}"
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
    r"\b(?:accura\w+|(?:success|pass|solve|resolve|resolution|completion|failure|fail|error|win)[ "
    r"-]rates?|success share|average)\b",
    re.IGNORECASE,
)
PLACES = (
    (
        1,
        r"(?<!second[- ])(?:best|strongest|highest)|most (?:reliable|capable|accurate|consistent|"
        r"successful)|top|on top|first(?: place)?|1st|leads?|leading|wins?|winner|#1|tops",
    ),
    (2, r"2nd|second(?:[- ]best)?|runner-up|#2"),
    (3, r"3rd|third(?:[- ]best)?|#3"),
    (4, r"4th|fourth|#4"),
    (
        -1,
        r"worst|weakest|lowest|last(?: place)?|bottom|"
        r"least (?:reliable|capable|accurate|consistent|successful)",
    ),
)
AT_TIMES = re.compile(r"\b(?:sometimes|intermittent\w*|occasional\w*|flaky)\b", re.IGNORECASE)
CHANGE_BEFORE = re.compile(
    r"\b(?:gain|improvement|increase|reduction|drop|decrease|uplift|lift|loss|change)s? of(?: "
    r"about)?\s*$",
    re.IGNORECASE,
)
CHANGE_AFTER = re.compile(
    r"\s*(?:relative|better|higher|lower|worse|more|fewer|less|improvement|increase|reduction|"
    r"drop|gain|decrease|decline|uplift)\b",
    re.IGNORECASE,
)
COMPARATIVE = re.compile(
    r"\s*(?!(?:high|low|great|bett|ov|und|aft|oth|wheth|p|nev|howev|rath|ev|answ|numb|tick|ord|"
    r"hard)er\b)\w+er\b"
)
OF_RATES = (
    r"(?:good|well|high|likely|many|much|often|frequent|reliabl|capabl|accura|success|consist|"
    r"strong|big|large|great|effective)"
)
SCALAR = re.compile(
    r"higher|greater|lower|fewer|more \w+s\b|above|below|more often|less often|exceed|surpass|top",
    re.IGNORECASE,
)
AHEAD_ON = re.compile(
    rf"{POLARITY.pattern}(?:\s+(?:than|to|over|against))?(?:\s+⟦r[\d*?]+⟧)?\s+(?:on|in|for)\s+"
    r"(?:only |just |as many as )?(?=⟦v|$)",
    re.IGNORECASE,
)
GAP_OF = re.compile(
    r"\b(?:gap|difference|drop|distance|spread|gain|rise|fall|loss|jump) of \w* ?⟦d", re.IGNORECASE
)
METRICS_IN_ORDER = re.compile(
    r"⟦m\d+⟧(?:[^⟦]|⟦d\d+⟧)*\b(?:above|over|below|under|than|behind|ahead of)\s+(?:its |the )?⟦m|"
    r"⟦m\d+⟧(?:(?!lower|less|below|smaller)[^⟦])*⟦c\d+⟧(?:(?!lower|less|below|smaller)[^⟦])*⟦m"
)
"""One metric that is called more or less than the next."""
GAP_NOUN = re.compile(r"\b(?:gap|difference|change|spread|margin|apart|differ)\b", re.IGNORECASE)
FROM_TO = (
    re.compile(r"\bfrom\s+⟦v(?P<a>\d+)⟧(?:(?!⟦v)[^;])*?\bto\s+(?:only |just )?⟦v(?P<b>\d+)⟧"),
    re.compile(r"⟦v(?P<a>\d+)⟧\s*(?:→|->)\s*⟦v(?P<b>\d+)⟧"),
    re.compile(
        r"⟦v(?P<b>\d+)⟧(?:(?!⟦v)[^;])*?(?:\bfrom|\(was|\bwas|previously|"
        r"before it was)\s+⟦v(?P<a>\d+)⟧"
    ),
)

# Words of claims that are neither a direction nor a quantity. A word that is in none of the lists
# here may turn a sentence round: what is beside it is not checkable.
_WORDS = frozenset(files(__package__).joinpath("vocabulary.txt").read_text("utf-8").split())
_SUFFIX = re.compile(r"(?:'s|s'|'|es|s|ed|d|ing|ly)$")
QUANTITY = re.compile(
    r"\b(?:most(?:ly)?|many|much|several|few|majority|minority|dozens|hundreds|thousands|some|any|"
    r"each|every\w*|all|none|no(?:thing|body)?|never|not|neither|nor|hardly|barely|"
    r"rarely|seldom|scarcely|sometimes|often|usually|always|only|once|twice|double|half|more|less|"
    r"fewer|least|second|third|fourth|fifth|last|rank\w*|tops?|than|except|unless|almost|nearly|"
    r"virtually|practically|vast|much|far|slight\w*|huge\w*|big|large|small|tiny|massive\w*|"
    r"dramatic\w*|substantial\w*|marginal\w*|considerabl\w*|overwhelming\w*)\b",
    re.IGNORECASE,
)


_PLACE = re.compile("|".join(pattern for _, pattern in PLACES), re.IGNORECASE)
_COUNTED = re.compile(rf"{TASKS}|{ATTEMPTS}", re.IGNORECASE)
# Noticeably and the like turn no sentence round; partly and supposedly do.
_MANNER = re.compile(r"(?!part|suppos|alleg|false|wrong|theor|hypoth|allow)\w{3,}ly", re.IGNORECASE)


@cache
def is_known(word: str) -> bool:
    """Whether a word is in one of the lists, by itself or without its ending."""
    stem = _SUFFIX.sub("", word.lower())
    return (
        not {word.lower(), stem, f"{stem}e", stem[:-1]}.isdisjoint(_WORDS)
        or len(word) < 2
        or ("-" in word and all(is_known(part) for part in word.split("-") if part))
        or any(
            pattern.fullmatch(word)
            for pattern in (
                POLARITY,
                EQUAL,
                UNSETTLED,
                PASS,
                FAIL,
                OTHER,
                GOAL,
                QUANTITY,
                CHANGE_AFTER,
                _PLACE,
                _MANNER,
                _COUNTED,
            )
        )
    )


_NAMES_OF_TASKS = re.compile(
    rf"(?<=⟧)(?:\s+tasks)?\s+(?:[\w-]+ ){{1,2}}(?={TASKS}\b)|"
    r"\b[\w-]+ (?=(?:benchmark|suite|set|dataset|tests?|evals?|evaluation|GPUs?)\b)",
    re.IGNORECASE,
)


# Why attempts failed: a share of these is none of passes or of all failures.
_CAUSES = re.compile(
    r"\btim(?:e|ed|es|ing)[ -]?outs?\b|\berrored\b|\b(?:end|finish|stop|terminat|abort)\w* "
    r"(?:in|with|by|on|after) (?:an? )?(?:errors?|exceptions?|timeouts?|crash\w*|refusals?)\b",
    re.IGNORECASE,
)


def unknown_words(text: str) -> list[str]:
    """The words of a text that are in none of the lists, without tokens; causes of failures."""
    plain = TOKEN.sub(
        " ", _NAMES_OF_TASKS.sub(" ", re.sub(rf"{BENCHMARK}(?: [A-Z]\w+)?", " ", text))
    )
    words = re.findall(r"[^\W\d_][\w'+.-]*[\w']|[^\W\d_]", plain)
    return [*_CAUSES.findall(plain), *(word for word in words if not is_known(word))]


# Ends of the parts of a clause, each of which is understood or not by itself.
PARTS = re.compile(r"[,;:()]|\s[–—-]+\s|\b(?:and|but|which|who|so|because|since)\b", re.IGNORECASE)
NOT_REACHED = re.compile(
    r"(?:\bnot|\bnever|\bfail\w* to)\s+(?:(?:even|quite|yet|ever)\s+)*(?:(?<=even )\w+|(?:reach|"
    r"exceed|surpass|top|hit|break|manage|attain|achieve|get(?= (?:to|above|over|"
    r"beyond)))\w*)\s+(?:to |above |over |even |beyond )*",
    re.IGNORECASE,
)
NOT_BOUND = re.compile(r"\b(?:not|never)\s+(?:(?:is|was|be|ever|once)\s+)*$", re.IGNORECASE)
HARMLESS = re.compile(
    r"\b(?:only|just|almost|nearly)(?=\s*(?:of |at |to |by |in |on |the |a |with |passes "
    r")*⟦[vdcs])|\b(?:on|for|of|over|in|across|with|made) (?:each|all)(?: of)?(?: the| our| "
    r"these)*(?=\s*⟦s|\s+tasks?\b)|(?<=\d⟧)\s*(?:tasks )?each\b|\beach(?= (?:agent|model|system|"
    r"side))|\b(?:not|never)\s+(?:(?:is|was|be|ever|once)\s+)*(?=⟦v)|\b(?:big|huge|large|small|"
    r"tiny|massive) (?=(?:step|leap|milestone|stride|advance)s?\b)|\bonce (?=we\b|you\b|it\b|"
    r"all\b)|\bbarely (?=\w+s\b)|\bas (?:many|much|often)\b|\bonce\b(?= \w+ (?:has|have|is|are))|"
    r"\b\w+ twice(?=,)",
    re.IGNORECASE,
)
COMPARING = re.compile(
    r"than|any|more|less|fewer|most|least|not|no|never|neither|nor|tops?|rank\w*|second|third|"
    r"fourth|last|first|twice|double|half|often",
    re.IGNORECASE,
)

_END = r"~?([-+]?\d*\.?\d+)\s?(%?)"
_ENDS = rf"{_END}\s*(?:points?)?\s*(?:,|to|-|–|and|\.\.\.?)\s*{_END}(\s?points)?"
INTERVALS = re.compile(
    rf"[(,]?\s*(?:{NUMBER}% )?(?:(?:paired|bootstrap|percentile) )*(?:(?:confidence |credible "
    rf")?intervals?|CIs?|bounds?)\b(?:\s+(?:over (?:the )?tasks|of the (?:paired )?(?:lift|"
    rf"difference|gap|loss|gain|drop|change|improvement)|for new tasks|for these tasks|is|was|of|"
    rf"from|for|on|in|⟦[rm]\d+⟧|the|runs|between|goes|rang\w+|extend\w*|stretch\w*|span\w*|"
    rf"reach\w*))*[:=,]?\s*[\[(]?\s*{_ENDS}\s*[\])]?|\(?\[\s*{_ENDS}\s*\]\)?|\(\s*{_ENDS}\s*\)|"
    rf"\bbetween {_ENDS}",
    re.IGNORECASE,
)
OF_A_LIFT = re.compile(r"\b(?:gap|difference|paired|lift|delta)\b[^\d%]{0,30}$", re.IGNORECASE)
"""Words by which an interval is that of a difference."""
ERRORS = re.compile(
    rf"\(?\s*(?P<plus>±|\+/-)\s*(?P<half>{NUMBER})\s?%?\s*(?P<se>SEM?|s\.e\.|SD|"
    rf"CI)?\s*(?:points)?\)?|[(,]?\s*(?:\b(?:with )?an? )?(?:(?:paired|clustered) )?\b(?:SE|SEM|"
    rf"s\.e\.|standard error)s?\s*(?:of|=|:|is)?\s*[~≈]?\s*(?P<error>{NUMBER})(?:%| points?)?\)?",
)


def spread_of(match: re.Match[str]) -> str:
    """Kind of the number behind "±", by the word beside it."""
    word = (match["se"] or ("SE" if match["error"] else ""))[:2].lower()
    rest = match.string[match.end() : match.end() + 60]
    if not word and re.match(r"[^.;,±]{0,30}\(?\b9\d% (?:confidence )?(?:CIs?|intervals?)\b", rest):
        return "ci"
    return "se" if word == "s." else word


BOUNDS = re.compile(r"\b(?:intervals?|CIs?|confidence|bounds?)\b", re.IGNORECASE)
# The worst and the best of single runs, or the distance between them.
_VARY = r"(?:rang\w+|span\w*|var(?:y|ies|ied|ying)|fluctuat\w+|differ\w*|spread\w*|swing\w*)"
_IN_ANY = (
    rf"(?: (?:in|on|across|over) (?:any|all|each)(?: of)?(?: its| the)?(?: \d+)? {ATTEMPTS}\b)?"
)
SPREADS = (
    (
        rf"\b(?:{_VARY} (?:anywhere |only |just )*(?:from |between )?|(?:scor\w+|lies?|lay|falls?|"
        rf"stays?|stayed|land\w*|is|are|was|were|reach\w*|solv\w+) (?:anywhere )?between "
        rf")({NUMBER})%?\s*(?:to|and|-|–)\s*({NUMBER})%?",
        (("worst", ""), ("best", "")),
    ),
    (
        rf"\b(?:stay\w*|remain\w*|scor\w+|reach\w*|is|was)\s+>=({NUMBER})%[^,;%]{{0,40}}?\b(?:in|"
        rf"on|across) (?:every|each|all)(?: of)?(?: (?:the|its|\d+))* (?:run|seed|trial)s?\b",
        (("worst", ">="),),
    ),
    (
        rf"\bstandard deviation\b[^%;]*?(?:is|of|was|=|:)\s*({NUMBER})(?: points?\b|%)",
        (("deviation", ""),),
    ),
    (rf"\b(?:never|not) (?:is |was |once )?<=({NUMBER})%{_IN_ANY}", (("worst", ">="),)),
    (rf"\b(?:never|not) (?:is |was |once )?>=({NUMBER})%{_IN_ANY}", (("best", "<="),)),
    (rf"\b{_VARY}(?: \w+)? by (?:only |just )?([<>]?=?\s?{NUMBER}) points?\b", (("spread", ""),)),
)
SCORES = rf"(?<![\w.])(?:{NUMBER}%?,?\s+(?:and\s+)?){{2,}}{NUMBER}%?"
"""Scores of single runs, one after the other."""

# Numbers in words.
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_TEENS = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
)
UNITS = {
    **{word: number for number, word in enumerate(_TEENS.split(), 1)},
    **{word: 10 * number for number, word in enumerate(_TENS.split(), 2)},
    "zero": 0,
    "dozen": 12,
    "hundred": 100,
    "thousand": 1000,
}
SPELT = "|".join(sorted(UNITS, key=len, reverse=True))
# "One" is a number only where it counts: one of 60, one task in five, one point, one more task.
NUMBER_WORDS = re.compile(
    rf"\b(?!one\b(?! (?:(?:{SPELT})\b|of (?:the |its |all )?(?:\d|(?:{SPELT})\b)|(?:in|out of) "
    rf"(?:every )?(?:\d|{SPELT})|(?:more |fewer )?(?:{TASKS}|{ATTEMPTS})\b|points?\b)))"
    rf"(?<!no )(?:a (?=(?:hundred|thousand|dozen)\b))?((?:{SPELT})(?:(?: and |[ -])(?:{SPELT}))*)"
    r"\b(?! another|[\w-]*-sided)",
    re.IGNORECASE,
)


def spell(match: re.Match[str]) -> str:
    total = 0
    for word in re.split(r" and |[ -]", match[1].lower()):
        value = UNITS[word]
        total = max(total, 1) * value if word in ("dozen", "hundred", "thousand") else total + value
    return str(total)
