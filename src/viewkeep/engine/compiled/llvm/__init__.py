"""From generated text to machine code."""
