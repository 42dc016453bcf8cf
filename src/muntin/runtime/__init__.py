"""The dataflow that both engines drive: inputs, frontiers, joins and the operators above them."""
