"""The driver of a run: the streaming query, the checkpoint, outputs, query changes and load control."""
