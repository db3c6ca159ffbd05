"""What makes a pair of texts fit for training, and the reasons why others are dropped."""

import collections
import re
import unicodedata

MAX_WORDS = 100

# Words that say which language a line is in; none is a word of another language here.
_FUNCTION_WORDS = {
    "en": set("the of and to is for with this that by from are which be it can will or at has "
              "have not you your its when if".split()),
    "de": set("der die das und ist für mit dieses diese dieser von den dem ein eine einen sie "
              "werden wird nicht zu auf im sich es oder als auch des zum zur kann".split()),
    "fr": set("le la les de des du et est un une pour avec ce cette dans sur par que qui vous "
              "ou au aux en sont ne pas il elle l d".split()),
}
# Characters without width go; the dot operator stands for a no-break space in French descriptions.
_REPLACED = {**dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff")), ord("\u22c5"): " "}
_WORD = re.compile(r"[^\W\d_]+")


def tidy(text):
    """One line: white space collapsed, composed characters, no invisible ones, no stray gaps."""
    text = unicodedata.normalize("NFC", text.translate(_REPLACED))
    text = " ".join(text.split())
    text = re.sub(r" ([.,])(?= |$)", r"\1", text)  # an image stood before the stop
    return re.sub(r"^[•*·] ?", "", text)


def words(text):
    return _WORD.findall(text.casefold())


def fault(source, target, languages):
    """Why this pair is no use for training, or ""."""
    if not source or not target:
        return "empty"
    if any(unicodedata.category(c) in ("Cc", "Cn", "Co") or c == "\ufffd" for c in source + target):
        return "strange characters"
    if "<trans>" in target or "<fuzzy>" in target:
        return "not translated"
    source_words, target_words = words(source), words(target)
    if not any(len(w) > 1 for w in source_words) or not any(len(w) > 1 for w in target_words):
        return "no words"
    for text, found in ((source, source_words), (target, target_words)):
        if sum(map(len, found)) < 0.5 * len(text.replace(" ", "")):
            return "mostly symbols"
    if len(source.split()) > MAX_WORDS or len(target.split()) > MAX_WORDS:
        return "too long"
    if source_words == target_words or _is_copy(source_words, target_words):
        return "not translated"
    if not _is_in(target, languages[1], languages[0]):
        return "target in the wrong language"
    if not _is_in(source, languages[0], languages[1]):
        return "source in the wrong language"
    short, long = sorted((len(source), len(target)))
    if long > 2.2 * short + 12:
        return "lengths don't fit"
    return ""


def _is_copy(source_words, target_words):
    common = collections.Counter(source_words) & collections.Counter(target_words)
    return common.total() > 0.8 * max(len(target_words), len(source_words))


def _is_in(text, language, other):
    found = _WORD.findall(text)  # small letters only: "DES" and "MIT" are no German words
    theirs = sum(w in _FUNCTION_WORDS[other] and w not in _FUNCTION_WORDS[language] for w in found)
    return theirs < 2 or theirs <= sum(w in _FUNCTION_WORDS[language] for w in found)
