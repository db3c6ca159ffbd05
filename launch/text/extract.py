#!/usr/bin/env python3
"""Makes parallel text of LibreOffice's help and Debian's package descriptions.

    extract.py --pair en-de --help-source A.deb --help-target B.deb --lists DIR --output DIR
    extract.py --pair en-de --output DIR --check      is what lies there whole and made by us?

Writes {train,dev,test}.{en,de} and .domain, and, last of all, manifest.json, which says what is in
them and what was dropped. Equal inputs give equal bytes. launch/fetch_text.sh gets the inputs.
"""

import argparse
import collections
import dataclasses
import hashlib
import json
import os
import pathlib
import subprocess
import sys

import cleaning
import descriptions
import help_pages
import holdout
import progress
import sentences

HELP, DESCRIPTIONS = "libreoffice-help", "package-descriptions"
SPLITS = ("train", "dev", "test")
HELD_OUT = 1000


@dataclasses.dataclass
class Pair:
    domain: str
    groups: set  # documents or package families in which it stands
    source: str
    target: str


class Collector:
    """Takes raw pairs, cleans and counts them, and keeps one translation for each source."""

    def __init__(self, languages):
        self.languages = languages
        self.found = collections.Counter()    # domain -> raw pairs
        self.dropped = collections.Counter()  # (domain, reason) -> pairs
        self._groups = {}                     # (domain, source) -> groups, in order of first sight
        self._targets = {}                    # (domain, source) -> Counter of targets

    def drop(self, domain, reason, count=1):
        self.found[domain] += count
        self.dropped[domain, reason] += count

    def add(self, domain, group, source, target):
        source, target = cleaning.tidy(source), cleaning.tidy(target)
        for a, b in sentences.split_pair(source, target, self.languages):
            reason = cleaning.fault(a, b, self.languages)
            if reason:
                self.drop(domain, reason)
                continue
            self.found[domain] += 1
            key = (domain, a)
            self._groups.setdefault(key, set()).add(group)
            self._targets.setdefault(key, collections.Counter())[b] += 1

    def pairs(self):
        """The most frequent translation of each source (the first of equals), in order."""
        result = []
        seen = set()
        for (domain, source), groups in self._groups.items():
            targets = self._targets[domain, source]
            target, count = targets.most_common(1)[0]
            self.dropped[domain, "repeated pair"] += count - 1
            self.dropped[domain, "another translation of the same source"] += (
                targets.total() - count)
            if source in seen:
                self.dropped[domain, "source is in another domain too"] += 1
                continue
            seen.add(source)
            result.append(Pair(domain, groups, source, target))
        return result


def collect_help(collector, source_deb, target_deb):
    target_pages = dict(help_pages.pages_of_package(target_deb))
    for name, page in progress.counted(help_pages.pages_of_package(source_deb), "help pages read"):
        if name not in target_pages:
            collector.drop(HELP, "page has no counterpart")
            continue
        for source, target, is_code in help_pages.paired_blocks(page, target_pages[name]):
            if is_code:
                collector.drop(HELP, "code")
            else:
                collector.add(HELP, name, source, target)


def list_lines(folder, pattern):
    """Lines of all of apt's lists with such names, whatever their compression."""
    for path in sorted(folder.glob(pattern)):
        command = ["/usr/lib/apt/apt-helper", "cat-file", str(path)]
        yield from subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.decode(
            "utf-8").split("\n")
        yield ""


def collect_descriptions(collector, lists):
    source_language, target_language = collector.languages
    english = {}
    for _, md5, body in descriptions.read_index(
            list_lines(lists, f"*_Translation-{source_language}*"), source_language):
        english.setdefault(md5, body)
    families = descriptions.families(list_lines(lists, "*_Packages*"))
    seen = set()
    translated = descriptions.read_index(
        list_lines(lists, f"*_Translation-{target_language}*"), target_language)
    for package, md5, body in progress.counted(translated, "descriptions read"):
        if md5 in seen:
            continue
        seen.add(md5)
        if md5 not in english:
            collector.drop(DESCRIPTIONS, "no English description with this MD5")
            continue
        family = families.get(package, descriptions.family(package))
        for source, target, reason in descriptions.paired_units(english[md5], body):
            if reason:
                collector.drop(DESCRIPTIONS, reason)
            else:
                collector.add(DESCRIPTIONS, family, source, target)


def write_atomically(path, text):
    """@return  SHA-256 of the bytes written."""
    data = text.encode("utf-8")
    temporary = path.with_name(path.name + ".tmp")
    with open(temporary, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    return hashlib.sha256(data).hexdigest()


def report(manifest):
    """The table of what was found, dropped and kept."""
    lines = []
    for domain, counts in manifest["domains"].items():
        lines.append(f"{domain}: {counts['found']} raw pairs")
        lines += [f"  {count:7d} dropped: {reason}" for reason, count in counts["dropped"].items()]
        lines += [f"  {counts['kept'][split]:7d} {split}" for split in SPLITS]
    return "\n".join(lines)


def write_text(output, languages, parts, collector, dropped, inputs):
    files = {}
    for split in SPLITS:
        columns = ((languages[0], "source"), (languages[1], "target"), ("domain", "domain"))
        for suffix, field in columns:
            text = "".join(getattr(pair, field) + "\n" for pair in parts[split])
            name = f"{split}.{suffix}"
            files[name] = {"lines": len(parts[split]),
                           "sha256": write_atomically(output / name, text)}
    domains = {}
    for domain, found in sorted(collector.found.items()):
        reasons = {reason: n for (where, reason), n in dropped.items() if where == domain and n}
        kept = {split: sum(pair.domain == domain for pair in parts[split]) for split in SPLITS}
        assert found == sum(reasons.values()) + sum(kept.values()), "pairs were lost uncounted"
        domains[domain] = {"found": found, "kept": kept,
                           "dropped": dict(sorted(reasons.items(), key=lambda item: -item[1]))}
    manifest = {"pair": "-".join(languages), "scripts": hash_of_scripts(), "inputs": inputs,
                "files": files, "domains": domains}
    write_atomically(output / "manifest.json", json.dumps(manifest, indent=1) + "\n")
    return manifest


def hash_of_scripts():
    digest = hashlib.sha256()
    for path in sorted(pathlib.Path(__file__).resolve().parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def package_version(deb):
    command = ["dpkg-deb", "--show", "--showformat", "${Package} ${Version}", str(deb)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def describe_inputs(debs, lists):
    indexes = {}
    for path in sorted(lists.glob("*_Translation-*")):
        text = "\n".join(list_lines(lists, path.name))
        indexes[path.name] = hashlib.sha256(text.encode()).hexdigest()
    return {"packages": [package_version(deb) for deb in debs], "indexes": indexes}


def extract(pair, debs, lists, output, held_out_size=HELD_OUT):
    """Does all of it. @return  the manifest. @throws ValueError  there is too little text."""
    languages = tuple(pair.split("-"))
    collector = Collector(languages)
    collect_help(collector, *debs)
    collect_descriptions(collector, lists)
    pairs = collector.pairs()
    held_out, training, dropped = holdout.hold_out(pairs, ("test", "dev"), held_out_size)
    parts = {split: [pairs[i] for i in lines] for split, lines in held_out.items()}
    parts["train"] = [pairs[i] for i in training]
    return write_text(output, languages, parts, collector, collector.dropped + dropped,
                      describe_inputs(debs, lists))


def is_whole(output, pair):
    """Whether the text there is of this pair, made by these scripts, and every file as written."""
    try:
        manifest = json.loads((output / "manifest.json").read_text(encoding="utf-8"))
        return manifest["pair"] == pair and manifest["scripts"] == hash_of_scripts() and all(
            hashlib.sha256((output / name).read_bytes()).hexdigest() == file["sha256"]
            for name, file in manifest["files"].items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # not there, or not ours
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--pair", required=True, choices=["en-de", "en-fr"])
    parser.add_argument("--output", required=True, type=pathlib.Path, metavar="DIR")
    parser.add_argument("--check", action="store_true", help="exit code 0 if nothing is to be done")
    parser.add_argument("--help-source", type=pathlib.Path, metavar="DEB")
    parser.add_argument("--help-target", type=pathlib.Path, metavar="DEB")
    parser.add_argument("--lists", type=pathlib.Path, metavar="DIR", help="apt's folder of lists")
    arguments = parser.parse_args()
    if arguments.check:
        return 0 if is_whole(arguments.output, arguments.pair) else 1
    try:
        manifest = extract(arguments.pair, (arguments.help_source, arguments.help_target),
                           arguments.lists, arguments.output)
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        print(f"error: making the text in {arguments.output}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    print(report(manifest))
    return 0


if __name__ == "__main__":
    sys.exit(main())
