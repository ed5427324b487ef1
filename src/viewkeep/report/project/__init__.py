"""Plans, runs and tests of projects."""
