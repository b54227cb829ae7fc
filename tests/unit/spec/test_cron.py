"""Cron expressions: what Airflow takes is taken, what it would choke on is refused while the file is read."""

import pytest

from training.spec.cron import PRESETS, check_cron


@pytest.mark.parametrize(
    "text",
    [*PRESETS, "* * * * *", "*/5 0-6/2 1,15 jan-MAR mon,7", "0 0 L * *", "0 0 * * 2#1", "59 23 31 12 0"],
)
def test_expressions_are_taken_as_they_are(text):
    assert check_cron(text) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("daily", "five fields"),
        ("", "five fields"),
        ("* * * * * *", "five fields"),
        ("@nightly", "preset"),
        ("60 * * * *", "minute takes 0 to 59, not '60'"),
        ("* 24 * * *", "hour takes 0 to 23"),
        ("* * 0 * *", "day of the month takes 1 to 31"),
        ("* * * 13 *", "month takes 1 to 12"),
        ("* * * * someday", "day of the week takes 0 to 7"),
        ("*/0 * * * *", "not '*/0'"),
        ("1- * * * *", "not '1-'"),
        ("L * * * *", "minute"),
    ],
)
def test_others_are_refused_by_field(text, words):
    with pytest.raises(ValueError, match="must be") as caught:
        check_cron(text)

    assert words in str(caught.value)
