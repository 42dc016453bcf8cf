"""One partition: its dataflows, the process that holds them, and how they are rebuilt."""
