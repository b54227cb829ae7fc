"""YAML as plain data with lines: what words mean, with libyaml's parser and with the pure one."""

import pytest
import yaml

from training.errors import SpecError
from training.spec import document
from training.spec.document import parse_document
from training.spec.mistake import Mistake
from training.spec.scalars import ScalarError, resolve_scalar

PARSERS = [pytest.param(yaml.SafeLoader, id="pure"), pytest.param(getattr(yaml, "CSafeLoader", None), id="libyaml")]


@pytest.fixture(params=PARSERS, autouse=True)
def parser(request, monkeypatch):
    if request.param is None:
        pytest.skip("PyYAML was built without libyaml")
    monkeypatch.setattr(document, "_LOADER", request.param)


@pytest.mark.parametrize(
    ("word", "value"),
    [
        *[
            (word, word)
            for word in ("no", "on", "Yes", "off", "y", "2024-01-01", "12:30", "1.2.3", "-", "+", ".", "x1")
        ],
        *[("true", True), ("FALSE", False), ("null", None), ("~", None), ("", None)],
        *[("3", 3), ("-0", 0), ("+7", 7), ("0x1F", 31), ("0o17", 15), ("1e-3", 0.001), (".5", 0.5), ("6.", 6.0)],
        *[("-1.5E+3", -1500.0), ("9223372036854775807", 2**63 - 1), ("1e5x", "1e5x"), ("0.1.2", "0.1.2")],
    ],
)
def test_plain_words_mean_what_they_look_like(word, value):
    found = parse_document(f"key: {word}").value["key"] if word != "-" else resolve_scalar(word)

    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    "word", ["010", "-08", "1_000", "0b11", ".nan", "-.inf", "1e999", "9223372036854775808", "1" * 9000]
)
def test_ambiguous_and_endless_numbers_are_refused(word):
    with pytest.raises(ScalarError):
        resolve_scalar(word)

    assert [mistake.path for mistake in parse_document(f"key: [{word}]").mistakes] == [("key", 0)]


def test_keys_are_the_text_that_is_written():
    assert parse_document("on: 1\n1: 2\n~: 3\n'': 4").value == {"on": 1, "1": 2, "~": 3, "": 4}


def test_every_part_has_its_line():
    parsed = parse_document("a: 1\n\nb:\n  c: [x,\n    y]\n  d:\n  - {e: 1}\n", "f")

    assert parsed.lines == {
        (): 1,
        ("a",): 1,
        ("b",): 3,
        ("b", "c"): 4,
        ("b", "c", 0): 4,
        ("b", "c", 1): 5,
        ("b", "d"): 6,
        ("b", "d", 0): 7,
        ("b", "d", 0, "e"): 7,
    }
    assert parsed.locate(Mistake(path=("b", "d", 0, "absent"), message="")).line == 7


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\n\tb: 2", 2, ""),
        ("a: b: c", 1, "second `: `"),
        ("a: 'b\nc: 1\n", 1, "never closed"),
        ("a: [1\nb: 2\n", 1, "not closed with `]`"),
        ("a: {b: 1\nc: 2\n", 1, "not closed with `}`"),
        ("a:\n  b: 1\n c: 2\n", 3, "indentation"),
        ("- a\nb: 1\n", 2, "item"),
        ("a: @b\n", 1, "cannot begin with `@`"),
        ("a: *\n", 1, "cannot begin with `*`"),
        ("a: &\n", 1, "cannot begin with `&`"),
        ("a: !<x\n", 1, "cannot begin with `!`"),
        ('a: "\\q"\n', 1, "no known escape"),
        ("%YAML 3.0\n---\na: 1\n", 1, "is not YAML"),
        ("a: 1\nb\n", 2, "`key: value`"),
    ],
)
def test_both_parsers_complain_alike(text, line, words):
    with pytest.raises(SpecError) as caught:
        parse_document(text, "f")

    problem = caught.value.problems[-1]
    assert (problem.file, problem.line) == ("f", line)
    assert words in problem.message


def test_mistakes_before_the_syntax_error_are_kept():
    with pytest.raises(SpecError) as caught:
        parse_document("a: 010\na: 1\nb: [\n", "f")

    assert [problem.field for problem in caught.value.problems] == ["a", "a", ""]
