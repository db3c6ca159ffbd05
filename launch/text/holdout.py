"""Sets lines for development and test apart: whole documents and package families, so that no line
of theirs, nor a near-copy of one on either side, is in the training text.
"""

import collections
import hashlib
import math

import progress
from cleaning import words

MIN_WORDS = 4        # shorter lines are no test of translation
MAX_GROUP = 40       # larger documents and families stay in the training text
MAX_NEAR_COPIES = 3  # a line with more of them elsewhere is boilerplate: not held out
SIMILAR = 0.6        # |words of both| / |words of either| that makes two lines near-copies
CONTAINED = 0.8      # so do as many of the shorter line's sequences of three words, if it has 4


def sequences(found):
    return {tuple(found[i:i + 3]) for i in range(len(found) - 2)}


class NearCopies:
    """Finds the lines that a text nearly repeats, regardless of case, digits and punctuation."""

    def __init__(self, texts):
        self._frequency = collections.Counter(word for text in texts for word in set(words(text)))
        self._lines_by_word = collections.defaultdict(list)
        self._lines_by_sequence = collections.defaultdict(list)
        self._bags = {}
        self._sequences = {}

    def _rare_words(self, bag):
        # Similar sets share one of these words: they can't both lack all of each other's rarest.
        ordered = sorted(bag, key=lambda word: (self._frequency[word], word))
        return ordered[:len(bag) - math.ceil(SIMILAR * len(bag)) + 1]

    def add(self, line, text):
        found = words(text)
        self._bags[line] = set(found)
        self._sequences[line] = sequences(found)
        for word in self._rare_words(self._bags[line]):
            self._lines_by_word[word].append(line)
        for sequence in self._sequences[line]:
            self._lines_by_sequence[sequence].append(line)

    @staticmethod
    def _are_similar(a, b):
        if min(len(a), len(b)) < SIMILAR * max(len(a), len(b)):
            return False
        return len(a & b) >= SIMILAR * len(a | b)

    def of(self, text):
        """The set of lines of which `text` is a near-copy."""
        found = words(text)
        bag, own = set(found), sequences(found)
        candidates = {line for word in self._rare_words(bag)
                      for line in self._lines_by_word.get(word, ())}
        result = {line for line in candidates if self._are_similar(bag, self._bags[line])}
        common = collections.Counter()
        for sequence in own:
            common.update(self._lines_by_sequence.get(sequence, ()))
        for line, count in common.items():
            shorter = min(len(own), len(self._sequences[line]))
            if shorter >= 4 and count >= CONTAINED * shorter:
                result.add(line)
        return result


def _order(domain, group):
    return hashlib.sha256(f"{domain}/{group}".encode()).digest()


def _candidate_groups(pairs, domain, wanted):
    """Documents of a domain in a fixed random order, enough of them, as group -> lines to test."""
    groups = collections.defaultdict(list)
    for i, pair in enumerate(pairs):
        if pair.domain == domain and len(pair.groups) == 1:
            groups[next(iter(pair.groups))].append(i)
    result, count = {}, 0
    for group in sorted(groups, key=lambda group: _order(domain, group)):
        if len(groups[group]) > MAX_GROUP:
            continue
        lines = [i for i in groups[group] if len(words(pairs[i].source)) >= MIN_WORDS]
        result[group] = lines
        count += len(lines)
        if count >= wanted:
            break
    return result


def _near_copies(pairs, candidates):
    """Candidate -> the set of pairs that nearly repeat it on either side."""
    sources = NearCopies(pair.source for pair in pairs)
    targets = NearCopies(pair.target for pair in pairs)
    for i in candidates:
        sources.add(i, pairs[i].source)
        targets.add(i, pairs[i].target)
    near = collections.defaultdict(set)
    for i, pair in enumerate(progress.counted(pairs, "pairs compared with those held out")):
        for line in (sources.of(pair.source) | targets.of(pair.target)) - {i}:
            near[line].add(i)
    return near


def hold_out(pairs, splits, size):
    """Parts the pairs.

    @param pairs   objects with domain, groups (every document the pair stands in), source, target
    @param splits  names, e.g. ("test", "dev")
    @param size    pairs in each split, drawn evenly from the domains
    @return        split -> indices; indices for training; Counter of (domain, reason dropped)
    @throws ValueError  there is too little text
    """
    domains = sorted({pair.domain for pair in pairs})
    share = size // len(domains)
    candidates = {domain: _candidate_groups(pairs, domain, 5 * share * len(splits))
                  for domain in domains}
    near = _near_copies(pairs, [i for groups in candidates.values()
                                for lines in groups.values() for i in lines])
    held_out = {split: [] for split in splits}
    used = {domain: set() for domain in domains}  # documents
    taken = set()
    for domain in domains:
        remaining = iter(candidates[domain].items())
        for split in splits:
            chosen = []
            while len(chosen) < share:
                group, lines = next(remaining, (None, None))
                if group is None:
                    raise ValueError(f"too little text of {domain} to hold out {share} pairs")
                used[domain].add(group)
                for i in lines:
                    elsewhere = sum(pairs[k].groups != pairs[i].groups for k in near[i])
                    if elsewhere <= MAX_NEAR_COPIES and not near[i] & taken and len(chosen) < share:
                        chosen.append(i)
                        taken.add(i)
            held_out[split] += chosen

    dropped = collections.Counter()
    copies = {k for i in taken for k in near[i]}
    training = []
    for i, pair in enumerate(pairs):
        if i in taken:
            continue
        if pair.groups <= used[pair.domain]:
            dropped[pair.domain, "in a held-out document, not chosen"] += 1
        elif i in copies:
            dropped[pair.domain, "near-copy of a held-out line"] += 1
        else:
            training.append(i)
    return held_out, training, dropped
