"""From a cell about success to a reward, and from rewards to verdicts."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from passhat._display import counted
from passhat.errors import Hint, InvalidValue, shorten
from passhat.stats.arrays import BoolArray, FloatArray, VerdictArray
from passhat.stats.outcomes.vocabulary import MissingReason

REWARD_TOLERANCE = 1e-6
"""Sums of floating rewards land a hair below 1; that is still a pass."""

REWARD_NAMES = frozenset({"reward", "rewards", "score", "scores", "grade", "points"})
"""Columns of success that hold scores, although all of them may be 0 or 1."""

_PASSED = frozenset(
    {
        *("true", "yes", "y", "t", "pass", "passed", "passes", "success", "succeeded", "correct"),
        *("resolved", "ok", "okay", "right", "solved", "accepted", "win", "won", "successful"),
        *("ac", "○", "◯", "〇", "p", "proved", "proven"),
        *("✓", "✔", "✔️", "✅", "☑", "☑️", "🟢", "🟩", "👍", "💚", "🎉"),
        *("ja", "wahr", "richtig", "korrekt", "bestanden", "oui", "vrai", "réussi", "réussite"),
        *("sí", "si", "verdadero", "correcto", "aprobado", "sim", "verdadeiro", "vero", "sì"),
        *("да", "верно", "истина", "是", "对", "對", "正确", "通过", "はい", "正解", "예", "tak"),
        *("evet", "doğru", "ja!", "kyllä", "igen", "ναι", "합격", "성공", "成功", "合格", "succès"),
        *("exitoso", "éxito", "superado", "erfolg", "erfolgreich", "gelöst", "geschafft", "успех"),
        *("успешно", "пройден", "sucesso", "aprovado", "correto", "riuscito", "superato", "gelukt"),
        *("geslaagd", "godkänd", "zaliczone", "zdane", "başarılı", "達成", "pasó"),
    }
)
_FAILED = frozenset(
    {
        *("false", "no", "n", "f", "fail", "failed", "fails", "failure", "incorrect", "wrong"),
        *("not ok", "unresolved", "unsolved", "unsuccessful", "rejected", "loss", "lost", "ko"),
        *("not passed", "not solved", "not resolved", "not correct", "nok", "wa", "wrong answer"),
        *("tle", "time limit exceeded", "mle", "memory limit exceeded", "×", "✕"),
        *("✗", "✘", "✖", "✖️", "❌", "☒", "🔴", "🟥", "👎", "💔"),
        *("nein", "falsch", "inkorrekt", "nicht bestanden", "non", "faux", "échec", "échoué"),
        *(
            "falso",
            "incorrecto",
            "fallido",
            "suspenso",
            "suspendido",
            "reprobado",
            "não",
            "nao",
            "нет",
            "неверно",
            "ложь",
        ),
        *("否", "错", "錯", "错误", "未通过", "失败", "いいえ", "不正解", "아니요", "nie"),
        *("hayır", "yanlış", "ei", "nem", "όχι", "불합격", "실패", "nej", "失敗", "不合格", "raté"),
        *("fallo", "fracaso", "falló", "fehlgeschlagen", "gescheitert", "fehlschlag", "провал"),
        *(
            "неудача",
            "не пройден",
            "falhou",
            "falha",
            "reprovado",
            "incorreto",
            "fallito",
            "mislukt",
        ),
        *("gezakt", "underkänd", "niezaliczone", "başarısız", "no pasó", "errado"),
    }
)
_NOTHING = frozenset(
    {
        *("", "nan", "na", "n/a", "n.a.", "null", "none", "missing", "-", "--", "–", "—", "?"),
        *("k. a.", "k.a.", "not run", "skip", "skipped", "pending", "tbd", "not graded"),
        *(
            "not scored",
            "not judged",
            "not evaluated",
            "ungraded",
            "unscored",
            "infra",
            "infrastructure",
        ),
        *("rate limit", "rate limited", "no verdict", "not recorded", "not attempted"),
    }
)
_NEGATION = re.compile(
    r"(?:not?|nicht|non|não|nao|не|nie|niet|inte|ikke|ej)\s+|[不未没非]", re.IGNORECASE
)
_REMARK = re.compile(r"\s*[(:;,\[]\s*|\s+[-–—]\s+")
_SURROUNDINGS = (
    r"(?:infra(?:structure)?|env(?:ironment)?|sandbox|runner|worker|vm|network|api|quota|"
    r"cluster|rate[ -]?limit|docker|container|judge|grader|scorer|user[ -]?sim(?:ulator)?|"
    r"infrastruktur|umgebungs?|netzwerk|netz|server|环境|网络|基础设施)"
)
_AGENTS = r"(?:(?:ki-?)?agent(?:en|s)?|(?:sprach)?modell?s?|bots?)"
_FAULTS = (
    r"(?:errors?|fail(?:ed|ures?)?|faults?|down|lost|died|crash(?:ed|es)?|time-?outs?|timed out|"
    r"unavailable|exceeded|exhausted|outage|gave up|stuck|fehler|ausfall|absturz|störung|abbruch|"
    r"abgestürzt|zeitüberschreitung|错误|故障|异常)"
)
_OF = r"\s+(?:(?:of|in|by|from|on|des|der|vom|im|durch)\s+)(?:(?:the|den|die|das|dem|der)\s+)?"
_INFRASTRUCTURE = re.compile(rf"{_SURROUNDINGS}\s*-?\s*{_FAULTS}|{_FAULTS}{_OF}{_SURROUNDINGS}")
"""The fault of what surrounds an agent: the attempt is missing, not failed."""
_AGENT_FAULT = re.compile(rf"{_AGENTS}\s*-?\s*{_FAULTS}|{_FAULTS}{_OF}{_AGENTS}")
_KEYS = re.compile(r" (?:ids?|tasks?|instances?|items|problems|names|list)$")
_CACHE_LIMIT = 10_000
_LONGEST_CELL = 1_000


class Unscored(NamedTuple):
    """Why scores that a source has are not kept, and how to keep them."""

    reason: str
    remedy: Hint

    @classmethod
    def of(cls, scores: FloatArray | None, remarks: tuple[str, ...]) -> Unscored | None:
        """Why :func:`grade` kept no scores; ``None`` where it lost none."""
        return cls(remarks[0], _STATE_RANGE) if scores is None and remarks else None


COUNTED_SCORES = Unscored(
    "attempts were counted, not read one by one",
    Hint("Read them one by one: {one_by_one}.", one_by_one=True),
)
_STATE_RANGE = Hint("State the range of the scores: {score_range}.", score_range="LOWEST..HIGHEST")


class RewardWords(dict[object, float]):
    """Looks up the reward behind a cell; a new cell is parsed once. NaN is missing."""

    def __missing__(self, cell: object) -> float:
        reward = _parse_reward(cell)
        if len(self) < _CACHE_LIMIT:
            self[cell] = reward
        return reward


def _parse_reward(cell: object) -> float:
    if isinstance(cell, np.generic):
        cell = cell.item()  # np.bool_ and np.float32 are none of Python's own types
    if cell is None:
        return math.nan
    if isinstance(cell, bool | int | float):
        return _finite(float(cell))
    if not isinstance(cell, str):
        raise ValueError(shorten(cell))
    # A verdict is at the begin of a text; a transcript of megabytes takes long to split.
    word = cell[:_LONGEST_CELL].strip().lower()
    reward = _word_reward(word)
    if reward is not None:
        return reward
    if word.endswith("%"):
        return _finite(float(word[:-1]) / 100)
    # 0,5 as in tables from countries that write it so; 1,000 may be a thousand, and is refused.
    if word.startswith("0,") or (len(word) <= 4 and word.startswith("1,")):
        word = word.replace(",", ".")
    return _finite(float(word))


def _word_reward(word: str) -> float | None:
    """The reward behind a word, or behind a sign and a word such as ✅ PASS."""
    word = _KEYS.sub("", word.replace("_", " "))  # a key such as resolved_ids
    if word in _NOTHING or _INFRASTRUCTURE.fullmatch(word):
        return math.nan
    if _AGENT_FAULT.fullmatch(word):
        return 0.0
    parts = {word} if word in _PASSED or word in _FAILED else set(word.split())
    if not parts <= _PASSED | _FAILED:
        # A verdict with a remark behind it: "failed: assertion", "❌ fail (timeout)".
        first, *remarks = (part.strip(" )]") for part in _REMARK.split(word, maxsplit=1))
        if first.strip("-–—?") and first in _NOTHING:
            return math.nan  # n/a (out of quota)
        if any(map(_INFRASTRUCTURE.fullmatch, remarks)):
            return math.nan
        parts = {first} if first in _PASSED or first in _FAILED else set(first.split())
    if not parts:
        return None
    if parts <= _PASSED:
        return 1.0
    negation = _NEGATION.match(word)
    is_negated = negation is not None and word[negation.end() :].strip() in _PASSED
    return 0.0 if parts <= _FAILED or is_negated else None


def _finite(reward: float) -> float:
    """The reward, if it is no infinity: a score that overflowed is neither a pass nor a failure."""
    if math.isinf(reward):
        raise ValueError(reward)
    return reward


@dataclass(frozen=True, slots=True)
class ScoreRange:
    """The lowest and the highest score that a source can give, as its user states them."""

    low: float
    high: float

    @classmethod
    def parse(cls, text: str) -> ScoreRange:
        """Read ``1..5``."""
        low, _, high = text.partition("..")
        try:
            bounds = cls(float(low), float(high))
        except ValueError:
            bounds = cls(0.0, 0.0)
        if not -math.inf < bounds.low < bounds.high < math.inf:
            raise InvalidValue(
                f"{text!r} is no score range.", hint="Write LOWEST..HIGHEST, as in 1..5"
            )
        return bounds

    def scale(self, scores: FloatArray) -> FloatArray:
        """The scores on [0, 1]; one beyond the range is an error."""
        beyond = (scores < self.low - REWARD_TOLERANCE) | (scores > self.high + REWARD_TOLERANCE)
        if beyond.any():
            raise InvalidValue(
                f"a score of {scores[beyond][0]:g} lies outside the stated range "
                f"{self.low:g}..{self.high:g}.",
                hint="State the range of all scores that the judge can give.",
            )
        return np.clip((scores - self.low) / (self.high - self.low), 0, 1)

    def judge(self, rewards: FloatArray, pass_at: float | None) -> Verdicts:
        """Verdicts on rewards in this range; without a threshold only the highest passes."""
        threshold = self.high if pass_at is None else pass_at
        scaled = verdicts_from_rewards(
            self.scale(rewards), (threshold - self.low) / (self.high - self.low)
        )
        note = f"scores from {self.low:g} to {self.high:g} are scaled to 0 to 1"
        return Verdicts(scaled.verdicts, (note, *scaled.notes))


def check_threshold(pass_at: float | None, bounds: ScoreRange | None) -> None:
    """Refuse a threshold that is no number, or that no score of the stated range can decide."""
    if pass_at is None:
        return
    if not math.isfinite(pass_at):
        raise InvalidValue(f"{pass_at} is no threshold.", hint="State a number, as in 0.5.")
    if bounds is not None and not bounds.low < pass_at <= bounds.high:
        raise InvalidValue(
            f"a threshold of {pass_at:g} decides nothing: scores go from {bounds.low:g} to "
            f"{bounds.high:g}.",
            hint=f"State one above {bounds.low:g} and at most {bounds.high:g}.",
        )


def is_binary(rewards: FloatArray) -> bool:
    """Whether all rewards are 0, 1, missing, or -1, the usual mark for "not run"."""
    return bool(_is_verdict(rewards).all())


def _is_verdict(rewards: FloatArray) -> BoolArray:
    marks: BoolArray = np.isnan(rewards) | (rewards == 0) | (rewards == 1) | (rewards == -1)
    return marks


@dataclass(frozen=True, slots=True, eq=False)
class Verdicts:
    """Verdict per row, and notes on how they were derived."""

    verdicts: VerdictArray
    notes: tuple[str, ...]


def verdicts_from_rewards(rewards: FloatArray, pass_at: float | None) -> Verdicts:
    """Decide passed, failed or missing.

    Rewards of 0 and 1 need no threshold, and -1 among them is the usual mark for "not run". Any
    other reward passes at ``pass_at``, which is 1 unless said otherwise; rewards above 1 without
    a stated threshold are refused, since 40 of 100 cannot be distinguished from 40 of 40.
    """
    notes = []
    binary = _is_verdict(rewards)
    if binary.all():
        marks = rewards == -1
        if marks.any() and not (rewards == 0).any() and (rewards == 1).any():
            # The two ends of a reward: without a 0 nothing else would be a failure.
            notes.append(f"-1 beside 1 was read as failed ({counted(int(marks.sum()), 'attempt')})")
            rewards, marks = np.where(marks, 0.0, rewards), np.zeros(len(rewards), bool)
        if marks.any():
            notes.append(f"-1 was read as missing ({counted(int(marks.sum()), 'attempt')})")
        rewards = np.where(marks, np.nan, rewards)
    elif pass_at is None and np.nanmax(rewards) > 1 + REWARD_TOLERANCE:
        raise _refuse_scale(rewards[~np.isnan(rewards)])
    threshold = 1.0 if pass_at is None else pass_at
    if not binary.all():
        notes.append(
            f"{counted(int((~binary).sum()), 'reward')} between or beyond 0 and 1; "
            f"passed means reward >= {threshold:g}"
        )
    verdicts = (rewards >= threshold - REWARD_TOLERANCE).astype(np.int8)
    verdicts[np.isnan(rewards)] = -1
    return Verdicts(verdicts, tuple(notes))


_USUAL_TOPS = (5, 10, 100)


def _refuse_scale(rewards: FloatArray) -> InvalidValue:
    """The refusal of rewards above 1, with the passes that usual thresholds of their scale give."""
    low, highest = float(rewards.min()), float(rewards.max())
    top = next((top for top in _USUAL_TOPS if 4 <= highest <= top), highest)
    low = min(low, 1.0 if low >= 1 and top <= 10 else 0.0)
    # Two values of a usual scale are a pass and a failure.
    is_binary_scale = highest in (10, 100) and len(np.unique(rewards)) == 2
    limits = [top] if is_binary_scale else [top, 0.8 * top, 0.5 * top]
    passes = [f"from {each:g} on {int((rewards >= each).sum())}" for each in limits]
    limit = float(f"{limits[len(limits) // 2]:g}")
    return InvalidValue(
        f"rewards go up to {highest:g}, so what counts as a pass must be stated.",
        hint=Hint(
            f"State the reward from which an attempt passes ({', '.join(passes)} of "
            f"{len(rewards)} do) and, to keep the scores, their range, for example: {{pass_at}} "
            "{score_range}",
            pass_at=int(limit) if limit.is_integer() else limit,
            score_range=f"{low:g}..{top:g}",
        ),
    )


def grade(
    scores: FloatArray, verdicts: VerdictArray, bounds: ScoreRange | None
) -> tuple[FloatArray | None, tuple[str, ...]]:
    """Scores on [0, 1] of all attempts with a verdict, and remarks.

    ``None`` where the scores are the verdicts themselves, or go beyond 0 and 1 without a stated
    range. An attempt with a verdict and without a score has its verdict as score.
    """
    scores = np.where(verdicts == -1, np.nan, scores)
    stated = ~np.isnan(scores) & (scores != -1)
    if bounds is None and is_binary(scores) and (scores == verdicts)[stated].all():
        return None, ()
    if bounds is None:
        low, high = float(np.nanmin(scores)), float(np.nanmax(scores))
        if low < -REWARD_TOLERANCE or high > 1 + REWARD_TOLERANCE:
            remark = f"scores from {low:g} to {high:g} are not kept: no score range was stated"
            return None, (remark,)
        scores = np.clip(scores, 0, 1)
    else:
        scores = bounds.scale(scores)
    absent = np.isnan(scores) & (verdicts != -1)
    scores[absent] = verdicts[absent]
    count = counted(int(absent.sum()), "attempt")
    return scores, (f"{count} without a score: the verdict counts, 1 or 0",) if absent.any() else ()


def blame_notes(failures: Mapping[str, int]) -> Iterator[str]:
    """Notes on attempts counted as failed whose reason is not the agent's fault.

    ``failures`` are the reasons of failed attempts, with their counts.
    """
    reasons = set(MissingReason)
    for word, count in failures.items():
        if count and word.lower() in reasons:
            yield (
                f"{counted(count, 'attempt')} with failure {word!r} counted as "
                "failed because the table says so; leave success empty to mark them missing"
            )


_ODD_ENDINGS = frozenset(
    {
        *("timeout", "timed out", "timed_out", "crash", "crashed", "error", "errored", "exception"),
        *("aborted", "cancelled", "canceled", "interrupted", "killed", "oom", "inconclusive"),
        *("partial", "partially", "partially correct", "unclear", "unknown", "incomplete"),
    }
)


def is_odd_ending(text: str) -> bool:
    """Whether a word says how an attempt ended, and not whether it passed."""
    word = _KEYS.sub("", _fold(text)).rstrip("s")
    return word in _ODD_ENDINGS or word.startswith("partial")


_WORD_END = re.compile(r"[\s_-]+|(?<=[a-z])(?=[A-Z])")
_GIVING_UP = frozenset(
    {
        *("gave up", "give up", "given up", "giveup", "gives up", "gaveup", "abandoned"),
        *("surrendered", "no answer", "no submission", "no patch", "empty patch", "stuck"),
    }
)
_MEASURES = frozenset(
    {
        *("step", "steps", "turn", "turns", "iteration", "iterations", "iter", "token", "tokens"),
        *("time", "cost", "budget", "context", "length", "calls", "limit"),
    }
)
_LIMITS = frozenset(
    {
        *("max", "maximum", "limit", "reached", "exceeded", "exhausted", "hit", "over", "out"),
        *("aborted", "stopped", "by", "of", "ran", "the", "window"),
    }
)
"""With a measure an attempt that ended at a limit of the agent: ``max steps reached``."""
_REASONS = _GIVING_UP | {
    *("wrong answer", "wa", "tle", "time limit exceeded", "mle", "memory limit exceeded"),
}
_AGENT_ENDINGS = _GIVING_UP | {"timeout", "timed out", "crash", "crashed", "oom"}


def _fold(text: object) -> str:
    return " ".join(_WORD_END.split(str(text)[:_LONGEST_CELL])).strip().lower()


def has_failure_reasons(cells: Iterable[object]) -> bool:
    """Whether the words for a failure say why: wrong answer, gave up."""
    return any(map(is_failure_reason, cells))


def is_failure_reason(cell: object) -> bool:
    """Whether a word says why an attempt failed."""
    word = _fold(cell)
    words = set(word.split())
    is_limit = words <= _MEASURES | _LIMITS and bool(words & _MEASURES)
    return word in _REASONS or (is_limit and bool(words - _MEASURES | words & {"limit"}))


def are_endings(cells: Iterable[object]) -> bool:
    """Whether all cells are such words or verdicts."""
    texts = list(map(str, cells))
    others = [t for t in texts if not (is_agent_ending(t) or is_odd_ending(t))]
    words = RewardWords()
    with suppress(ValueError):
        return all(words[text] in (0.0, 1.0) for text in others)
    return False


def is_agent_ending(text: str) -> bool:
    """Whether a word beside reasons of failures is one of them, and no fault of the set-up."""
    return _fold(text) in _AGENT_ENDINGS or is_failure_reason(text)
