"""A single view model, and the terminal, Markdown, JSON, CSV and HTML made from it.

Nothing is imported here: the list of runs must not wait for the imports of a comparison.

``passhat.report`` is this package and also a public function, because Python attaches a
subpackage to its parent under the same name. Hence the package can be called.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Report on runs: see :func:`passhat.report.public.report`."""
        from passhat.report.public import report

        return report(*arguments, **options)


sys.modules[__name__].__class__ = _CallablePackage
