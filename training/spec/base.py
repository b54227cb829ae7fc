"""What all blocks of the spec share: the base model and the scalar types. No block lives here."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict


class SpecModel(BaseModel):
    """Base of all blocks: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, populate_by_name=True)


def _check_name(name: str) -> str:
    if not all(letter.isascii() and (letter.isalnum() or letter in "_-.") for letter in name):
        raise ValueError("may hold letters, digits, '_', '-' and '.' only")
    return name


def _check_alias(alias: str) -> str:
    """Refuse what the MLflow registry refuses: see `mlflow.utils.validation._validate_model_alias_name`."""
    reserved = alias.lower() == "latest" or (alias[0] in "vV" and alias[1:].isdecimal())
    if reserved:
        raise ValueError("may not be `latest` or look like a version (`v1`): MLflow reserves those")
    return alias


Text = Annotated[str, Field(min_length=1)]
#: The pattern is for editors; the validator says the same in words.
Name = Annotated[
    str,
    Field(min_length=1, max_length=200, json_schema_extra={"pattern": "^[A-Za-z0-9_.-]+$"}),
    AfterValidator(_check_name),
]
Alias = Annotated[Name, AfterValidator(_check_alias)]
Flag = Annotated[bool, Strict()]
Number = Annotated[float, Strict(), Field(allow_inf_nan=False)]
WholeNumber = Annotated[int, Strict()]
PositiveInt = Annotated[int, Strict(), Field(ge=1)]
Count = Annotated[int, Strict(), Field(ge=0)]
Seed = Annotated[int, Strict(), Field(ge=0, lt=2**32)]
Seconds = Annotated[float, Strict(), Field(gt=0, allow_inf_nan=False)]
