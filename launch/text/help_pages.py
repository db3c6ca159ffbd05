"""Paragraphs of LibreOffice's help: HTML pages that are alike in every language but for the words.

Paragraphs and headings carry an id that all translations share; one without an id is known by the
last id before it and its place after that.
"""

import html.parser
import subprocess
import tarfile
import tempfile

BLOCKS = {"p", "h1", "h2", "h3", "h4", "h5", "h6"}
VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}
SKIPPED_TAGS = {"script", "style", "pre", "footer", "header", "aside", "button", "nav"}
CODE_BLOCKS = {"code", "smathcode", "codeintable", "bascode", "pycode", "sqlcode"}
CODE_SPANS = {"code", "literal", "input"}


class _Page(html.parser.HTMLParser):
    """Collects `blocks`, key -> (text, share of it that is code), in the order of the page."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.blocks = {}
        self._open = []  # (tag, role) of every open element
        self._skipping = 0
        self._code = 0
        self._texts = []  # of the block and of the variants open inside it, the innermost last
        self._code_length = 0
        self._key = ("", 0)
        self._variants = []  # of every open switch: list of (is the default, text)

    def handle_starttag(self, tag, attributes):
        if tag == "br" and self._texts:
            self._texts[-1].append(" ")
        if tag in VOID:
            return
        attributes = dict(attributes)
        classes = set((attributes.get("class") or "").split())
        role = self._role(tag, classes)
        self._open.append((tag, role))
        if role == "skip":
            self._skipping += 1
        elif role == "code":
            self._code += 1
        elif role == "switch":
            self._variants.append([])
        elif role == "variant":
            is_default = (attributes.get("id") or "").startswith("default")
            self._variants[-1].append([is_default, ""])
            self._texts.append([])
        elif role == "block":
            identity = attributes.get("id")
            self._key = self._next_key(identity)
            self._texts = [[]]
            self._code_length = 0

    def _role(self, tag, classes):
        if self._skipping or tag in SKIPPED_TAGS or classes & CODE_BLOCKS:
            return "skip"
        if tag in BLOCKS:
            return "block"
        if not self._texts:
            return ""
        if tag == "span" and "switchinline" in classes:
            return "switch"
        if tag == "span" and self._open and self._open[-1][1] == "switch":
            return "variant"
        return "code" if tag == "code" or classes & CODE_SPANS else ""

    def _next_key(self, identity):
        if identity is None:
            return (self._key[0], self._key[1] + 1)
        count = 0
        while (identity, count) in self.blocks:  # the same paragraph shown twice
            count += 1000
        return (identity, count)

    def handle_endtag(self, tag):
        if tag in VOID or not any(name == tag for name, _ in self._open):
            return
        while True:
            name, role = self._open.pop()
            self._close(role)
            if name == tag:
                return

    def _close(self, role):
        if role == "skip":
            self._skipping -= 1
        elif role == "code":
            self._code -= 1
        elif role == "variant":
            self._variants[-1][-1][1] = "".join(self._texts.pop())
        elif role == "switch":
            # One text for each program or system: the default, or else the first.
            variants = sorted(self._variants.pop(), key=lambda variant: not variant[0])
            if variants and self._texts:
                self._texts[-1].append(variants[0][1])
        elif role == "block" and self._texts:
            text = "".join(self._texts[0])
            visible = sum(not c.isspace() for c in text)
            self.blocks[self._key] = (text, self._code_length / visible if visible else 0)
            self._texts = []

    def handle_data(self, data):
        if self._skipping or not self._texts:
            return
        self._texts[-1].append(data)
        if self._code:
            self._code_length += sum(not c.isspace() for c in data)


def page_blocks(text):
    """The page's paragraphs: key -> (text as it stands, share of it that is code)."""
    page = _Page()
    page.feed(text)
    page.close()
    return page.blocks


def paired_blocks(source_page, target_page):
    """Yields (source text, target text, is code) of the paragraphs that both pages have."""
    source, target = page_blocks(source_page), page_blocks(target_page)
    for key, (text, code) in source.items():
        if key in target:
            yield text, target[key][0], min(code, target[key][1]) > 0.8


def pages_of_package(deb):
    """Yields (name, HTML) of every page in a libreoffice-help-* package, sorted by name.

    Names start below the folder of the language, so they agree between packages.
    """
    command = ["dpkg-deb", "--fsys-tarfile", deb]
    # Its messages go to a file: a pipe that nobody reads would stop it, and then us.
    with tempfile.TemporaryFile() as messages:
        reason = None
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=messages) as process:
            try:
                with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
                    pages = dict(_pages_of_archive(archive))
            except (tarfile.TarError, UnicodeDecodeError) as error:
                reason = str(error)
            process.stdout.close()
        if reason is None and process.returncode == 0:
            return sorted(pages.items())
        messages.seek(0)
        reason = messages.read().decode(errors="replace").strip() or reason
    raise OSError(f"{deb} can't be read: {reason or 'it is cut short'}. Delete it and download it again.")


def _pages_of_archive(archive):
    for member in archive:
        _, _, path = member.name.partition("/libreoffice/help/")
        name = path.partition("/")[2]
        if member.isfile() and name.startswith("text/") and name.endswith(".html"):
            yield name, archive.extractfile(member).read().decode("utf-8")
