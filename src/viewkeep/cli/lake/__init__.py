"""Commands about lakes: tables, views, rows, refreshes, and the page."""
