"""How work on a shared join is ordered: levels of windows, and the work queue that the compiled schedulers LWO, SWF and MQT keep.

Knows numbers only: no rows, no plans, no clocks.
"""
