"""From a bound query to a physical plan: what is stored, which indexes, which order.

Pure functions over plan nodes; nothing here holds rows or looks at a clock. Imports plan and model.
"""
