"""`python -m postroad`: the same as the command `postroad`."""

from postroad import cli

if __name__ == "__main__":
    cli.main(prog_name="postroad")
