"""The vocabulary of all other packages: schemas, windows, time, the catalog and settings.

Plain values that check themselves. Nothing here computes a result, parses SQL or holds rows.
Imports numpy and pyarrow only.
"""
