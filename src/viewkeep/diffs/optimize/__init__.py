"""Pass 0: the view as an optimizer would write it; one file per rule."""
