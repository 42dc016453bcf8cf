"""Types and values of SQL expressions, computed by DuckDB over Arrow batches.

The only package that imports duckdb, besides the oracle in ``testing``. Imports model and plan
only.
"""
