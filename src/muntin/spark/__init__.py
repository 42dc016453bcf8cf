"""Muntin on Spark: sources, buckets, durable state, sinks and progress; the only home of pyspark.

Here is how rows reach the buckets and results the sinks. What happens inside a bucket is the in-process engine.
"""

from __future__ import annotations
