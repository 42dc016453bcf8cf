from __future__ import annotations

import pytest

from muntin.errors import SqlError
