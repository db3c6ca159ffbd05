"""Cuts paired paragraphs into sentences, where both sides agree about where the ends are."""

import re

# Words before a full stop that does not end a sentence; single letters and numbers neither do.
ABBREVIATIONS = {
    "en": "e.g i.e etc vs cf dr mr mrs ms no vol fig approx incl resp st ca al inc ltd jr sr dept",
    "de": "bzw usw ca evtl ggf vgl nr bspw sog inkl zzgl etc dr hr fr abs art bd tel str max min "
          "allg bes ehem einschl engl entspr gem insb od vs z.b d.h u.a u.ä o.ä s.o s.u i.d.r",
    "fr": "etc cf ex p.ex env fig vol no art av apr m mm mme dr st ste c.-à-d réf vs max min",
}
_ABBREVIATIONS = {language: set(words.split()) for language, words in ABBREVIATIONS.items()}

# The end of a sentence, closing quotes and brackets, a space, opening ones, and the next word.
_END = re.compile(r"(?P<end>[.!?…]+)[\"'”“«»’)\]]*\s+(?=[\"'„“‚‘»«¿¡(\[]*\s?(?P<next>\w))")
_LAST_WORD = re.compile(r"[^\s(\[„“\"»«]*$")


def split(text, language):
    """The sentences of a paragraph; what can't be cut with confidence stays together."""
    result, begin = [], 0
    for match in _END.finditer(text):
        word = _LAST_WORD.search(text[begin:match.start()])[0].lower()
        is_abbreviation = match["end"] == "." and (
            word in _ABBREVIATIONS[language] or re.fullmatch(r"[^\W\d_]|\d{1,3}|", word))
        if match["next"].isupper() and not is_abbreviation:
            result.append(text[begin:match.end()].strip())
            begin = match.end()
    return [*result, text[begin:].strip()]


def split_pair(source, target, languages):
    """Pairs of sentences if both sides have as many, of similar lengths; else the one pair."""
    left, right = split(source, languages[0]), split(target, languages[1])
    if len(left) != len(right) or len(left) < 2:
        return [(source, target)]
    whole = len(target) / max(1, len(source))
    for a, b in zip(left, right):
        relative = len(b) / len(a) / whole
        if abs(len(b) - len(a) * whole) > 20 and not 0.55 < relative < 1.8:
            return [(source, target)]
    return list(zip(left, right))
