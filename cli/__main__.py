"""`python -m tracewh.cli` is the `tracewh` command."""

from tracewh.cli import main

main(prog_name="tracewh")
