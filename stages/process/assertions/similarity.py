"""How alike two texts are: ROUGE-N recall, BLEU and the edit distance."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_TOKEN = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+")


def tokens(text: str) -> list[str]:
    """Words and numbers of any script, in lower case; each Chinese or Japanese character is one.

    Examples
    --------
    >>> tokens("A1 café, 很")
    ['a1', 'café', '很']
    """
    return _TOKEN.findall(text.lower())


def rouge_n(candidate: str, reference: str, n: int = 1) -> float:
    """ROUGE-N recall: share of the reference's n-grams that the candidate has, each counted as often as it occurs.

    0 where the reference has no n-gram. Lin (2004), https://aclanthology.org/W04-1013.

    Examples
    --------
    >>> rouge_n("the the the", "the cat")
    0.5
    """
    wanted = _ngrams(tokens(reference), n)
    found = _ngrams(tokens(candidate), n)
    return (wanted & found).total() / wanted.total() if wanted else 0.0


def bleu(candidate: str, reference: str, n: int = 4) -> float:
    """BLEU against one reference, n-grams of length 1 to `n`, unsmoothed.

    0 where one length has no n-gram in common, hence for any candidate of less than `n` tokens.
    Papineni et al. (2002), https://doi.org/10.3115/1073083.1073135.

    Examples
    --------
    >>> round(bleu("a b c d e", "a b c d f"), 4)
    0.6687
    """
    said, wanted = tokens(candidate), tokens(reference)
    logs = 0.0
    for length in range(1, n + 1):
        grams = _ngrams(said, length)
        common = (grams & _ngrams(wanted, length)).total()
        if not common:
            return 0.0
        logs += math.log(common / grams.total())
    brevity = min(0.0, 1 - len(wanted) / len(said))
    return math.exp(brevity) * math.exp(logs / n)


def _ngrams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    if n == 1:
        return Counter((word,) for word in words)
    if n == 2:
        return Counter(pairwise(words))
    return Counter(zip(*(words[start:] for start in range(n)), strict=False))


def levenshtein(first: Sequence[object], second: Sequence[object]) -> int:
    """Least number of insertions, deletions and substitutions that make one sequence the other.

    One step per item of the longer one on whole integers of as many bits as the shorter has items.
    Hyyrö (2003), "A bit-vector algorithm for computing Levenshtein and Damerau edit distances".

    Examples
    --------
    >>> levenshtein("kitten", "sitting")
    3
    """
    short, long = sorted((first, second), key=len)
    if not short:
        return len(long)
    places: dict[object, int] = {}
    for index, item in enumerate(short):
        places[item] = places.get(item, 0) | 1 << index
    full = (1 << len(short)) - 1
    last = 1 << len(short) - 1
    more, less, distance = full, 0, len(short)
    for item in long:
        equal = places.get(item, 0)
        diagonal = (((equal & more) + more) ^ more) | equal | less
        up = less | ~(diagonal | more) & full
        down = more & diagonal
        distance += bool(up & last) - bool(down & last)
        up = up << 1 | 1
        more = (down << 1 | ~(diagonal | up)) & full
        less = up & diagonal & full
    return distance


# What `str.strip` and ``\s`` take for white space differs from it in the byte order mark and some control characters.
_SPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
_WORD = re.compile(f"[^{_SPACE}]+")


def trimmed(text: str) -> str:
    """The text without white space at its ends."""
    return text.strip(_SPACE)


def word_count(text: str) -> int:
    """How many words a text has: runs of anything but white space."""
    return sum(1 for _ in _WORD.finditer(text))
