"""What a plan needs to know of the data, and the arithmetic of the split."""

from __future__ import annotations

from dataclasses import dataclass

from training.errors import spec_error


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFacts:
    """What is known of a dataset before a step is made.

    Attributes:
        rows: Training rows.
        validation_rows: Rows that are held out.
        feature_shape: Shape of one row; None when not known yet.
        feature_dtype: NumPy name of the type of the features; None when not known yet.
        classes: Number of classes; None when not known yet or when the label is a number to be predicted.
        label_shape: Shape of one label, empty for a single value; None when not known yet.
        label_dtype: NumPy name of the type of the labels; None when not known yet.
        basis: Where this is known from, as a phrase for the plan.
    """

    rows: int
    validation_rows: int
    feature_shape: tuple[int, ...] | None = None
    feature_dtype: str | None = None
    classes: int | None = None
    label_shape: tuple[int, ...] | None = None
    label_dtype: str | None = None
    basis: str = ""


def plan_split(rows: int, validation_fraction: float) -> tuple[int, int]:
    """Return the numbers of training and of validation rows.

    >>> plan_split(1797, 0.2)
    (1438, 359)

    Raises:
        SpecError: A part that was asked for would be empty.
    """
    if rows < 2:
        raise spec_error("data.source", f"must have at least 2 rows. Received: {rows}.")
    validation = round(rows * validation_fraction)
    if validation == 0 and validation_fraction > 0:
        raise spec_error(
            "data.validation_fraction",
            f"must hold out at least one row. Received: {validation_fraction:g} of {rows} rows, which is none.",
            f"Set it to {1 / rows:.2g} or more, to 0 for no validation, or give more rows.",
        )
    if validation == rows:
        raise spec_error(
            "data.validation_fraction",
            f"must leave at least one row for training. Received: {validation_fraction:g} of {rows} rows, that is all.",
        )
    return rows - validation, validation
