"""The messages between Spark tasks: packed rows, control rows, and their encoding."""
