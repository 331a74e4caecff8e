"""Where the command line begins: outside of our packages, one of which a folder of the user's may hide."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; if a module of the user's hides one of ours, say so, with exit code 2."""
    try:
        import evalcube  # noqa: F401 - it looks for such modules
    except ImportError as error:
        sys.stderr.write(f"evalcube: {error}\n")
        sys.exit(2)
    from flows.cli import main as run

    run()


if __name__ == "__main__":
    main()
