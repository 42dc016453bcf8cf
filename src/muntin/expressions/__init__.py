"""The meaning of SQL expressions: types and values, computed by DuckDB over Arrow batches.

The only home of duckdb besides the oracle in ``testing``. Imports model and plan only.
"""
