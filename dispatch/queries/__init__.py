"""What the console reads: bounded, a fixed number of queries a page, no exact counts of big tables."""
