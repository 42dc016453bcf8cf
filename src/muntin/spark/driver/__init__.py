"""The driver of a run: streaming query, checkpoint, outputs, query changes and load control."""
