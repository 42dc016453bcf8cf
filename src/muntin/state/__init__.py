"""What operators remember: the stream log, the window stores of a join, partitions.

Each reports its size. State does not depend on queries, SQL or results. Imports model and kernels.
"""
