"""A page about a lake in the browser: documents, the file that draws them, and a small server."""
