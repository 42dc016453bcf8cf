"""What travels between Spark tasks: rows packed by partition, control messages, and their encoding."""
