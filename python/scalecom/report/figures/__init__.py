"""One file a kind of plot."""
