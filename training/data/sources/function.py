"""`module:function` or `path.py:function` that returns `(x, y)`."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np

from training.arguments import check_arguments
from training.data.rows import Rows
from training.entrypoint import Entrypoint, get_function, import_entrypoint
from training.errors import WorkerError, spec_error


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSource:
    """A function of the user's, called with `data.params`.

    Attributes:
        entrypoint: Where the function is.
        params: Its keyword arguments.
    """

    entrypoint: Entrypoint
    params: dict[str, Any]

    def read(self) -> Rows:
        """Call the function.

        Raises:
            SpecError: There is no such function, its arguments do not fit, or it returned something else than `(x, y)`.
            WorkerError: The function raised.
        """
        name = self.entrypoint.function or ""
        function = get_function(import_entrypoint(self.entrypoint), name, self.entrypoint)
        if not callable(function):
            raise spec_error(
                "data.source", f"must name a function. Received: {self.entrypoint.text}, a {type(function).__name__}."
            )
        check_arguments(function, self.params, field="data.params", called=self.entrypoint.text)
        try:
            value = function(**self.params)
        except Exception as error:
            raise WorkerError(f"{self.entrypoint.text} raised {type(error).__name__}: {error}") from error
        return self._to_rows(value)

    def _to_rows(self, value: object) -> Rows:
        if inspect.isgenerator(value) or not isinstance(value, (tuple, list)) or len(value) != 2:
            length = f" of {len(value)}" if isinstance(value, (tuple, list)) else ""
            raise spec_error(
                "data.source",
                f"must return two arrays, (x, y). Received: a {type(value).__name__}{length} "
                f"from {self.entrypoint.text}.",
            )
        try:
            return Rows(x=np.asarray(value[0]), y=np.asarray(value[1]))
        except ValueError as error:
            raise spec_error(
                "data.source",
                "must return two arrays, (x, y). Received: rows of unequal shapes "
                f"from {self.entrypoint.text}: {error}.",
            ) from error
