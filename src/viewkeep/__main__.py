"""`python -m viewkeep` is the command `viewkeep`."""

from viewkeep.cli.main import run

if __name__ == "__main__":
    run()
