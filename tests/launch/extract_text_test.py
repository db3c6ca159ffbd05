"""Tests of launch/text, on pages and descriptions made up for them."""

import contextlib
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "launch" / "text"))

import cleaning
import descriptions
import extract
import help_pages
import holdout
import progress
import sentences

LANGUAGES = ("en", "de")


def page(body):
    return ("<html><head><title>T</title></head><body><header><p>Help</p></header>"
            f'<div id="DisplayArea">{body}</div><footer><p>debug</p></footer></body></html>')


def texts(body):
    return [" ".join(text.split()) for text, _ in help_pages.page_blocks(page(body)).values()]


class HelpPages(unittest.TestCase):
    def test_takes_paragraphs_and_headings_without_the_frame_of_the_page(self):
        self.assertEqual(texts('<h1 id="a">One &amp; only</h1><p id="b">Two&nbsp;\n words<br>here</p>'),
                         ["One & only", "Two words here"])

    def test_takes_the_default_of_a_switch(self):
        mac = '<span id="MACx_1" class="MAC"><span class="keycode">Command</span></span>'
        default = '<span id="defaultx_1"><span class="keycode">Ctrl</span></span>'
        for variants in (mac + default, default + mac):
            self.assertEqual(
                texts(f'<p id="a">Press <span class="switchinline">{variants}</span>+F.</p>'),
                ["Press Ctrl+F."])
        self.assertEqual(texts('<p id="a">A <span class="switchinline"><span class="WRITER">text</span>'
                               '<span class="CALC">sheet</span></span>.</p>'), ["A text."])

    def test_skips_code_and_says_how_much_of_a_paragraph_is_code(self):
        self.assertEqual(texts('<pre>print()</pre><p class="code" id="a">x = 1</p><p id="b">Run.</p>'),
                         ["Run."])
        blocks = help_pages.page_blocks(page('<p id="a"><span class="input">f(x)</span></p>'
                                             '<p id="b">abcd<code>efgh</code></p>'))
        self.assertEqual([code for _, code in blocks.values()], [1, 0.5])

    def test_joins_by_id_and_by_place_after_an_id(self):
        source = page('<p id="a">one</p><p>two</p><p>three</p><p id="b">four</p><p id="a">again</p>'
                      '<p id="only">five</p>')
        target = page('<p id="b">vier</p><p id="a">eins</p><p>zwei</p><p>drei</p><p id="a">noch</p>')
        pairs = [(a, b) for a, b, _ in help_pages.paired_blocks(source, target)]
        self.assertEqual(pairs, [("one", "eins"), ("two", "zwei"), ("three", "drei"),
                                 ("four", "vier"), ("again", "noch")])

    def test_survives_tags_that_are_never_closed_or_never_opened(self):
        self.assertEqual(texts('</span><p id="a">one<b>two</p></i><p id="b">three</p>'),
                         ["onetwo", "three"])


class Descriptions(unittest.TestCase):
    def test_reads_an_index(self):
        index = ("Package: a\nDescription-md5: 11\nDescription-de: Kurz\n Lang.\n .\n Mehr.\n\n"
                 "Package: b\nDescription-md5: 22\nDescription-fr: court\n\n"
                 "Package: c\nDescription-md5: 33\nDescription-de: Ende").split("\n")
        self.assertEqual(list(descriptions.read_index(index, "de")),
                         [("a", "11", ["Kurz", "Lang.", ".", "Mehr."]), ("c", "33", ["Ende"])])

    def test_cuts_sections_into_paragraphs_and_items(self):
        body = ["A long", "text:", "  * one", "    more", "  * two", "flush again", ".", "* x", "y",
                "* z", ".", "   code", "- no item"]
        self.assertEqual(descriptions.sections(body), [
            [("paragraph", "A long text:"), ("item", "one more"), ("item", "two"),
             ("paragraph", "flush again")],
            [("item", "x y"), ("item", "z")],
            [("verbatim", "code"), ("paragraph", "- no item")]])

    def test_mends_compounds_cut_at_the_end_of_a_line(self):
        self.assertEqual(descriptions.joined("ein Emacs-", "Lisp-Paket"), "ein Emacs-Lisp-Paket")
        self.assertEqual(descriptions.joined("Ein-", "und Ausgabe"), "Ein- und Ausgabe")
        self.assertEqual(descriptions.joined("a -", "b"), "a - b")

    def test_pairs_by_position_where_counts_agree(self):
        source = ["short", "One.", ".", "  * a", "  * b", ".", "Two."]
        target = ["kurz", "Eins.", ".", "  * A", ".", "Zwei."]
        self.assertEqual(list(descriptions.paired_units(source, target)), [
            ("short", "kurz", ""), ("One.", "Eins.", ""),
            ("a", "", "lists have different numbers of items"),
            ("b", "", "lists have different numbers of items"), ("Two.", "Zwei.", "")])
        self.assertEqual([reason for _, _, reason in descriptions.paired_units(source, target[:2])],
                         [""] + ["descriptions have different numbers of paragraphs"] * 4)

    def test_families_come_from_source_packages(self):
        index = ["Package: libfoo1", "Source: foo-tools (1.2)", "", "Package: texlive-lang", "",
                 "Package: 0ad-data", ""]
        self.assertEqual(descriptions.families(index),
                         {"libfoo1": "foo", "texlive-lang": "texlive", "0ad-data": "0ad"})


class Sentences(unittest.TestCase):
    def test_cuts_at_ends_but_not_behind_abbreviations_and_numbers(self):
        self.assertEqual(sentences.split("One. Two! (Three?) “Four…” Five", "en"),
                         ["One.", "Two!", "(Three?)", "“Four…”", "Five"])
        for whole, language in (("See e.g. Linux or vs. Windows.", "en"), ("Am 3. Januar.", "de"),
                                ("Die z. B. Linux bzw. Unix nutzen.", "de"), ("p. ex. Linux", "fr"),
                                ("Version 1.2 of foo. bar too", "en"), ("", "en")):
            self.assertEqual(sentences.split(whole, language), [whole])

    def test_cuts_pairs_only_where_both_sides_agree(self):
        self.assertEqual(sentences.split_pair("One. Two.", "Eins. Zwei.", LANGUAGES),
                         [("One.", "Eins."), ("Two.", "Zwei.")])
        self.assertEqual(sentences.split_pair("One. Two.", "Eins und zwei.", LANGUAGES),
                         [("One. Two.", "Eins und zwei.")])
        lopsided = ("A short one. " + "Long " * 20 + "end.", "Lang " * 20 + "Ende. Ein kurzer.")
        self.assertEqual(sentences.split_pair(*lopsided, LANGUAGES), [lopsided])


class Cleaning(unittest.TestCase):
    def test_tidies(self):
        self.assertEqual(cleaning.tidy(" a\u00a0\u2028b \u00ad\u200bc . \n"), "a bc.".replace("b", "b "))
        self.assertEqual(cleaning.tidy("• e\u0301 .NET ,x"), "é .NET ,x")

    def test_names_the_fault(self):
        good = "The file could not be opened for you."
        cases = {
            ("", "Leer"): "empty", ("Empty", ""): "empty",
            ("a\x07 bell", "eine Glocke"): "strange characters",
            ("The text", "<trans>"): "not translated", ("Noto Sans", "noto  sans"): "not translated",
            ("12 %", "12 Prozent"): "no words", ("=F(1;2;3;4;5) is", "=F(1;2;3;4;5) ist"): "mostly symbols",
            ("a word " * 60, "ein Wort " * 60): "too long",
            (good, "The file can not be opened."): "target in the wrong language",
            (good, "Nein."): "lengths don't fit",
            ("Die Datei und das Verzeichnis für den Text", "Die Datei und das, was mit ist"):
                "source in the wrong language",
            (good, "Die Datei konnte nicht geöffnet werden."): "", ("Close", "Schließen"): "",
            ("uses DES, MIT and AES", "nutzt DES, MIT und AES"): "",
        }
        for (source, target), reason in cases.items():
            self.assertEqual(cleaning.fault(source, target, LANGUAGES), reason, (source, target))


class HoldOut(unittest.TestCase):
    def test_finds_near_copies(self):
        line = "Creates and saves the fax template, then opens it for editing."
        others = ["creates and saves the fax template then opens it for editing 42",
                  "Creates and saves the letter template, then opens it for editing.",
                  f"Attention. {line} And a good many other words that make the line much longer.",
                  "Deletes the fax.", ""]
        near = holdout.NearCopies([line, *others])
        near.add(0, line)
        self.assertEqual([bool(near.of(text)) for text in others], [True, True, True, False, False])

    @staticmethod
    def pairs():
        result = []
        for domain in "xy":
            for group in range(40):
                for k in range(6):
                    name = f"{domain}{'abcdefghij'[group // 4]}{'qrst'[group % 4]}{'uvwxyz'[k]}"
                    result.append(extract.Pair(domain, {f"{domain}/{group}"},
                                               f"{name}q {name}r {name}s {name}t", f"z{name} y{name}"))
            result += [extract.Pair(domain, {f"{domain}/{group}"},
                                    f"this is boilerplate of file {'abcdefghij'[group // 4]}", f"{domain}{group}")
                       for group in range(40)]
        # Near-copies of what may be held out, in documents of their own.
        result += [extract.Pair(p.domain, {f"copy {p.source}"}, p.source + " 7", "anders")
                   for p in result[::9] if "boilerplate" not in p.source]
        return result

    def test_holds_out_whole_documents_and_drops_their_near_copies(self):
        pairs = self.pairs()
        held_out, training, dropped = holdout.hold_out(pairs, ("test", "dev"), 40)
        self.assertEqual({split: len(lines) for split, lines in held_out.items()},
                         {"test": 40, "dev": 40})
        tested = [i for lines in held_out.values() for i in lines]
        self.assertEqual(len(set(tested)), 80)
        for lines in held_out.values():
            self.assertEqual(sum(pairs[i].domain == "x" for i in lines), 20)
        documents = {group for i in tested for group in pairs[i].groups}
        self.assertFalse(documents & {group for i in training for group in pairs[i].groups})
        self.assertFalse({g for i in held_out["test"] for g in pairs[i].groups}
                         & {g for i in held_out["dev"] for g in pairs[i].groups})
        near = holdout.NearCopies(p.source for p in pairs)
        for i in tested:
            near.add(i, pairs[i].source)
            self.assertNotIn("boilerplate", pairs[i].source)
        self.assertFalse([pairs[i].source for i in training if near.of(pairs[i].source)])
        self.assertGreater(sum(n for (_, reason), n in dropped.items() if "near-copy" in reason), 0)
        self.assertEqual(len(training) + len(tested) + dropped.total(), len(pairs))

    def test_is_the_same_each_time_and_says_when_there_is_too_little(self):
        pairs = self.pairs()
        self.assertEqual(holdout.hold_out(pairs, ("test",), 20), holdout.hold_out(pairs, ("test",), 20))
        with self.assertRaisesRegex(ValueError, "too little text of x"):
            holdout.hold_out(pairs, ("test",), 2000)


@unittest.skipUnless(pathlib.Path("/usr/lib/apt/apt-helper").exists(), "this system has no apt")
class Whole(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.folder = pathlib.Path(self._folder.name)
        self.debs = [self.deb("en-us", "{0}a {0}b {0}c {0}d"), self.deb("de", "{0}e {0}f {0}g.")]
        self.lists = self.folder / "lists"
        self.lists.mkdir()
        names = [letter * 2 for letter in "abcdefghijklmnopqrst"]
        (self.lists / "x_main_Packages").write_text("".join(f"Package: {n}-tool\n\n" for n in names))
        for language, letters in (("en", "hijk"), ("de", "lmno")):
            (self.lists / f"x_main_Translation-{language}").write_text("".join(
                f"Package: {n}-tool\nDescription-md5: {n}\nDescription-{language}: "
                + " ".join(n + letter for letter in letters) + "\n "
                + " ".join(n + letter * 2 for letter in letters) + ".\n\n" for n in names))

    def deb(self, language, sentence):
        root = self.folder / language
        text = root / "usr/share/libreoffice/help" / language / "text"
        (root / "DEBIAN").mkdir(parents=True)
        text.mkdir(parents=True)
        (root / "DEBIAN/control").write_text(
            f"Package: libreoffice-help-{language}\nVersion: 1\nArchitecture: all\n"
            "Maintainer: nobody <nobody@example.org>\nDescription: for a test\n")
        for i in range(20):
            paragraphs = [f'<p id="p{k}">{sentence.format(chr(97 + i) * 3 + "xyz"[k])}</p>'
                          for k in range(3)]
            (text / f"page{i}.html").write_text(page("".join(paragraphs)))
        subprocess.run(["dpkg-deb", "--build", "--root-owner-group", root, self.folder], check=True,
                       stdout=subprocess.DEVNULL)
        return self.folder / f"libreoffice-help-{language}_1_all.deb"

    def make(self, name):
        output = self.folder / name
        output.mkdir()
        return output, extract.extract("en-de", self.debs, self.lists, output, held_out_size=8)

    def test_makes_parallel_files_and_counts_every_pair(self):
        output, manifest = self.make("out")
        for split in ("train", "dev", "test"):
            lines = [(output / f"{split}.{suffix}").read_text().count("\n")
                     for suffix in ("en", "de", "domain")]
            self.assertEqual(lines, [manifest["files"][f"{split}.en"]["lines"]] * 3)
        self.assertEqual((output / "test.domain").read_text(),
                         "libreoffice-help\n" * 4 + "package-descriptions\n" * 4)
        self.assertEqual(manifest["domains"]["libreoffice-help"]["found"], 60)
        self.assertEqual(manifest["domains"]["package-descriptions"]["found"], 40)
        self.assertEqual(manifest["inputs"]["packages"],
                         ["libreoffice-help-en-us 1", "libreoffice-help-de 1"])
        self.assertEqual(json.loads((output / "manifest.json").read_text()), manifest)
        self.assertFalse(list(output.glob("*.tmp")))

    def test_equal_inputs_give_equal_bytes(self):
        self.assertEqual(self.make("out1")[1], self.make("out2")[1])

    def test_knows_whether_it_is_whole(self):
        output, _ = self.make("out")
        self.assertTrue(extract.is_whole(output, "en-de"))
        self.assertFalse(extract.is_whole(output, "en-fr"))
        self.assertFalse(extract.is_whole(self.folder, "en-de"))
        (output / "dev.de").write_text("cut short")
        self.assertFalse(extract.is_whole(output, "en-de"))

    def test_a_package_that_is_no_package_is_an_error(self):
        self.debs[1].write_bytes(b"no package")
        with self.assertRaisesRegex(OSError, "libreoffice-help-de_1_all.deb can't be read"):
            self.make("out")

    def test_an_interruption_is_silent(self):
        fifo = self.folder / "fifo.deb"
        os.mkfifo(fifo)
        script = pathlib.Path(extract.__file__)
        process = subprocess.Popen(
            [sys.executable, script, "--pair", "en-de", "--output", self.folder, "--lists", self.lists,
             "--help-source", fifo, "--help-target", fifo], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        with open(fifo, "wb"):  # waits until it is read
            process.send_signal(signal.SIGINT)
            self.assertEqual((process.communicate()[0], process.returncode), (b"", 130))


class Progress(unittest.TestCase):
    def test_says_how_much_is_done_when_it_is_time(self):
        said = io.StringIO()
        with contextlib.redirect_stdout(said), mock.patch.object(progress, "SECONDS", 0):
            self.assertEqual(list(progress.counted("ab", "letters read")), ["a", "b"])
        self.assertEqual(said.getvalue(), "[text] 1 letters read\n[text] 2 letters read\n")


if __name__ == "__main__":
    unittest.main()
