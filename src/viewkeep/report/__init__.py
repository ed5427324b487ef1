"""Text, tables, trees and JSON from analyses.

Functions take values and return rich renderables; `text.plain_text` makes strings of them.
`page` is one query in full, `workload` a line per query, `as_json` the same for programs.
"""
