"""What operators remember: the stream log, the window stores of a join, partitions.

Each tells its size. State knows nothing of queries, SQL or results. Imports model and kernels.
"""
