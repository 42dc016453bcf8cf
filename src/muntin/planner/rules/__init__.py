"""The rules that the planner applies, one file each."""
