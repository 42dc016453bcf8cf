"""Benchmarks that anyone can run again: ``python -m benchmarks NAME``.

One module a question; each returns a :class:`benchmarks.report.Report`, printed as a table and
written as JSON. Two things are compared in one run, and what counts is their ratio.
"""
