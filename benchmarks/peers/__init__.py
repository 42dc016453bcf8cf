"""The systems that ``python -m benchmarks peers`` compares, one script per system.

Systems with a separate environment have pinned packages.

A script runs where nothing of Muntin is installed, started by ``main.py``, and so imports neither
Muntin (but for its own two) nor its neighbours. It has ``CANNOT``, reasons by kind of workload;
``begin(job)``, which starts the system and is not timed; and ``run(system, job)``, which is: from
the start of reading to the last result. ``run`` returns for each query the number of results and a
checksum that does not depend on their order.
"""
