"""Hypothesis profiles.

``fast`` is for development, ``ci`` for ``make test``, and ``deep`` for releases
(``MUNTIN_PROFILE=deep``).
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

from muntin.kernels import jit
from muntin.testing.kernel_checks import checked

_QUIET = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)
settings.register_profile("fast", max_examples=20, deadline=None, suppress_health_check=_QUIET)
settings.register_profile(
    "ci", max_examples=100, deadline=None, suppress_health_check=_QUIET, derandomize=True
)
settings.register_profile("deep", max_examples=2_500, deadline=None, suppress_health_check=_QUIET)
settings.load_profile(os.environ.get("MUNTIN_PROFILE", "fast"))

jit.guard = checked
"""A kernel that gets an argument of another type than it was compiled for is a bug: raise."""
