from __future__ import annotations

from datetime import datetime

import pyarrow as pa
import pytest

from muntin.expressions.duck import Duck
from muntin.sql.lexer import tokenize
from muntin.sql.writer import plain_text

from .conftest import Bind
