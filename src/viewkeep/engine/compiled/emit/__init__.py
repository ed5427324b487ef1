"""From a trigger program to the text that is compiled."""
