"""``python -m muntin``: the command line."""

from muntin.cli import main

if __name__ == "__main__":
    main()
