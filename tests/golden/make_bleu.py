#!/usr/bin/env python3
"""Writes the inputs and expected values of the BLEU tests; needs sacrebleu 2.x. See PROVENANCE.md.

    python3 tests/golden/make_bleu.py

bleu_odd.{hyp,ref}   lines with every odd character we could think of, made here
bleu_odd.json        per tokenizer and case: tokens of each line (references first), statistics of each pair, the score
bleu_sample.json     scores of tests/samples/libreoffice-help/dev.{de,fr}.perturbed against dev.{de,fr}
"""

import json
import pathlib
import random

import sacrebleu
from sacrebleu.metrics import BLEU

HERE = pathlib.Path(__file__).resolve().parent
SAMPLE = HERE.parent / "samples" / "libreoffice-help"
SETTINGS = [(t, lc) for t in ("13a", "intl", "char", "none") for lc in (False, True)]

# Every character that str.split() takes for white space, except the end of line; then some that
# look like white space and are none.
SPACES = ("\t\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007"
          "\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000")
NOT_SPACES = "\u180e\u200b\u200c\u200d\u2060\ufeff\u00ad\x00\x01\x08\x0e\x1b\x7f\x80\x9f"

# (reference, hypothesis)
ODD = [
    ("", ""), ("", "words without a reference"), ("reference without words", ""),
    ("   ", " \t "), ("one", "one"), ("one", "two"), ("a b", "a b"), ("a b c", "a b d"),
    ("a b c d", "a b c d"), ("a b c d e", "a b c d e"), ("the the the the", "the the the the the the"),
    ("the cat sat on the mat", "the the the the the the the"),
    ("a a a a b b b b", "a a b b a a b b"), ("x y x y x y x y x", "y x y x y x y x y"),
    # 13a: entities are undone once, in a fixed order
    ("Tom &amp; Jerry &lt;b&gt; &quot;x&quot;", "Tom & Jerry <b> \"x\""),
    ("&amp;lt; &amp;amp; &amp;quot; &ampquot;", "&lt; &amp; &quot; \"; < &"),
    ("&quot;&quot; &apos; &nbsp; &#39;", "\"\" ' \u00a0 &"), ("&am<skipped>p; &lt", "&amp; <"),
    ("before <skipped> after<skipped>", "before after"), ("<skip<skipped>ped>", "<skipped>"),
    # 13a: numbers, stops, dashes
    ("It costs 1,000.50 or 3,14.", "It costs 1,000.50 or 3.14."), (".5 and 5. and 5.5.5", ".5 and 5 ."),
    ("3. ,4 5,. .,. ... ,,, a.b.c 1.a a.1", "3 . , 4 5,. . , . .. ,, a . b. c 1.a a.1"),
    ("1990-2000 a-1 1-a -1 1- 1--1 1---", "1990 - 2000 a-1 1 -a -1 1- 1 - -1 1-- -"),
    ("1.-2,-3-.4-,5 -.-,-", "1. -2 ,-3 -.4-, 5 -. -, -"), ("a.", "a ."), (".", "."), (",", "."),
    ("..........", ". . . ."), ("end.", "end"), ("1.", "1 ."), ("1,", "1"), ("word,word", "word , word"),
    ("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", "! \" # $ % & ' ( ) * + , - . / : ; < = > ? @ [ \\ ] ^ _ ` { | } ~"),
    ("don't can't 'tis rock'n'roll", "do n't ca n't ' tis rock 'n' roll"),
    ("e-mail/web: a@b.example #tag $5 50% C++ x=y*z", "email / web : a @ b . example # tag $ 5 50 % C + + x = y * z"),
    ("path C:\\dir\\file.txt ~/home [1] {2} `3`", "path C: dir file . txt ~ home [ 1 ] { 2 } ` 3 `"),
    # intl: Unicode punctuation, symbols, numbers of every kind
    ("„Anführung“ ‚einfach‘ »Guillemets« «franç.» ‹x›", "\"Anführung\" 'einfach' »Guillemets« « franç . » ‹ x ›"),
    ("Gedankenstrich – und — und ‒ und ― … Ende…", "Gedankenstrich - und - und - … Ende ..."),
    ("¿Qué? ¡Hola! § 5 ¶ † ‡ • · ‰ ′ ″", "¿ Qué ? ¡ Hola ! §5 ¶ † ‡ • · ‰ ′ ″"),
    ("5 € £3 ¥ ¢ ₿ 20 °C ± × ÷ ≤ ∞ → ⇒ ∑ √ ¬ © ® ™ ª º", "5€ £ 3 ¥ ¢ ₿ 20°C ± × ÷ ≤ ∞ → ⇒ ∑ √ ¬ © ® ™ ª º"),
    ("1.5 1,5 1·5 1′5 1–5 1…5 ½.5 ².³ Ⅷ.Ⅸ ①.② ٣.٤", "1.5 1 , 5 1·5 1′ 5 1–5 1 …5 ½.5 ². ³ Ⅷ.Ⅸ ①. ② ٣.٤"),
    ("١٢٣٫٤٥ ١٬٢٣٤ १२३.४५ 一二三.四", "١٢٣ ٫ ٤٥ ١٬٢٣٤ १२३ . ४५ 一二三 . 四"),
    ("a..b ..a a.. 1..2 .1. a.1 1.a (1) 1)2 ((1)) a(b)", "a . . b . . a a . . 1 .. 2 . 1 . a . 1 1 . a ( 1 ) 1)2 ( ( 1 ) ) a ( b )"),
    ("x^2 a+b=c `a` ~5 1+1 1<2 $a$ |b|", "x ^ 2 a + b = c ` a ` ~ 5 1 + 1 1 < 2 $ a $ | b |"),
    ("´acute ¨ ¯ ¸ ˜ ˆ ꞈ", "´ acute ¨ ¯ ¸ ˜ ˆ ꞈ"), ("a_b __init__ ‿ ﹏ ＿", "a _ b _ _ init _ _ ‿ ﹏ ＿"),
    ("𐄀 𐏐 𝟙.𝟚 𐄇.𐄈 𝛁 🂡 😀😀.😀 👩‍👩‍👧 🇩🇪", "𐄀 𐏐 𝟙 . 𝟚 𐄇.𐄈 𝛁 🂡 😀 😀 . 😀 👩‍👩‍👧 🇩 🇪"),
    ("。、「日本語」（中文）！？：；～・…％＄", "。 、 「 日本語 」 （ 中文 ） ！ ？ ： ； ～ ・ … ％ ＄"),
    ("日本語の文章です。", "日本の文章だ。"), ("我们在3.5版本中", "我们在 3 . 5 版本里"), ("한국어 문장.", "한국어 문장 ."),
    ("e\u0301 \u0301 .\u0301 1\u0301. \u20dd.", "é \u0301 . \u0301 1\u0301 . \u20dd ."),
    ("नमस्ते।॥ ", "नमस्ते । ॥"), ("«\u202fpoint\u202f»\u00a0: l\u2019été\u00a0!", "« point » : l'été !"),
    # lower-casing
    ("ΟΔΥΣΣΕΥΣ Σ ΣΣ ΑΣ ΑΣ. ΑΣ' ΑΣ'Β Σ́ Α̱Σ̱ ΑΣ\u00adΒ Σ1 1Σ ΑΣ1", "οδυσσευς σ σς ας ας. ας' ασ'β σ́ α̱ς̱ ασ\u00adβ σ1 1σ ας1"),
    ("ΑΣ-ΒΣ_ΓΣ:ΔΣ·ΕΣ’ΖΣ", "ας-βς_γς:δς·ες’ζς"), ("İSTANBUL IĞDIR ı i̇", "i̇stanbul iğdır ı i̇"),
    ("STRASSE STRAẞE ß ﬁ ǅ Ǆ ǆ ŉ", "strasse straße ß ﬁ ǆ ǆ ǆ ŉ"), ("K Å Ω", "k å ω"),
    ("ÀÉÎÕÜ ŸÆŒØ ĐÐÞ ЁЖЩ ԱՖ ႠჅ ᲐᲿ Ꭰ ꭰ Ⓐ Ⅷ Ａ 𐐀 𞤀 𝐀", "àéîõü ÿæœø đðþ ёжщ աֆ ⴀⴥ აჿ ꭰ ꭰ ⓐ ⅷ ａ 𐐨 𞤢 𝐀"),
    ("The QUICK Brown fox", "the quick brown FOX"), ("IJ Ĳ ĲSSEL", "ij ĳ ĳssel"), ("Ì Í Ĩ J̇ Į̇", "ì í ĩ j̇ į̇"),
]


def odd_lines():
    """More (reference, hypothesis) pairs made by rule, so that no neighbourhood is forgotten."""
    pairs = list(ODD)
    for c in SPACES + NOT_SPACES:
        pairs.append((f"left{c}right .{c}, 1{c}-{c}2 tail{c}", f"{c}left right. {c},1-2{c}{c}tail"))
    pairs.append((SPACES.join("abc"), NOT_SPACES.join("abc")))
    draw = random.Random(20160401)
    alphabet = "a1.,-'&;<\"(/ \u00a0é½。€Σ😀"  # all classes of both tokenizers, hence all pairs of them
    for _ in range(120):
        pairs.append(tuple("".join(draw.choice(alphabet) for _ in range(draw.randint(1, 40))) for _ in (0, 1)))
    letters = "abAB.,12 "
    for _ in range(60):  # few symbols, many repetitions: clipping of counts
        pairs.append(tuple(" ".join(draw.choice(letters) for _ in range(draw.randint(1, 30))) for _ in (0, 1)))
    return pairs


def perturbed(line, draw):
    """A line as a poor translation might have it."""
    words = line.split(" ")
    for _ in range(draw.randint(0, max(1, len(words) // 4))):
        at = draw.randrange(len(words))
        what = draw.randrange(5)
        if what == 0 and len(words) > 1:
            del words[at]
        elif what == 1:
            words.insert(at, words[at])
        elif what == 2:
            other = draw.randrange(len(words))
            words[at], words[other] = words[other], words[at]
        elif what == 3:
            words[at] = words[at].swapcase()
        else:
            words[at] = words[at][: max(1, len(words[at]) // 2)]
    return " ".join(words)


def write_lines(path, lines):
    path.write_bytes("".join(line + "\n" for line in lines).encode())


def report(metric, hypotheses, references):
    score = metric.corpus_score(hypotheses, [references])
    return {
        "score": score.score, "precisions": score.precisions, "bp": score.bp, "ratio": score.ratio,
        "counts": score.counts, "totals": score.totals, "hyp_len": score.sys_len, "ref_len": score.ref_len,
        "signature": str(metric.get_signature()), "line": score.format(signature=str(metric.get_signature())),
    }


def main():
    pairs = odd_lines()
    references, hypotheses = [p[0] for p in pairs], [p[1] for p in pairs]
    assert not any("\n" in line for line in references + hypotheses)
    write_lines(HERE / "bleu_odd.ref", references)
    write_lines(HERE / "bleu_odd.hyp", hypotheses)
    odd, sample = [], []
    for tokenize, lowercase in SETTINGS:
        metric = BLEU(tokenize=tokenize, lowercase=lowercase)
        tokens = [" ".join(metric._preprocess_segment(line).split()) for line in references + hypotheses]
        statistics = metric._extract_corpus_statistics(hypotheses, [references])
        odd.append({"tokenize": tokenize, "lowercase": lowercase, "tokens": tokens, "statistics": statistics,
                    **report(metric, hypotheses, references)})
    for language in ("de", "fr"):
        references = (SAMPLE / f"dev.{language}").read_text(encoding="utf-8").split("\n")[:-1]
        draw = random.Random(language)
        hypotheses = [perturbed(line, draw) for line in references]
        write_lines(SAMPLE / f"dev.{language}.perturbed", hypotheses)
        for tokenize, lowercase in SETTINGS:
            sample.append({"language": language, "tokenize": tokenize, "lowercase": lowercase,
                           **report(BLEU(tokenize=tokenize, lowercase=lowercase), hypotheses, references)})
    for name, cases in (("bleu_odd", odd), ("bleu_sample", sample)):
        text = json.dumps({"sacrebleu": sacrebleu.__version__, "cases": cases}, ensure_ascii=True)
        (HERE / f"{name}.json").write_text(text.replace('{"tokenize"', '\n{"tokenize"').replace('{"language"', '\n{"language"') + "\n")


main()
