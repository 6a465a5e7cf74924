"""One file a part of the page, each a function of what was found that returns None where it has nothing to
show."""
