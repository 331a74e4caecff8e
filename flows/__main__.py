"""`python -m flows` is the command line, for where no script is installed."""

from evalcube_command import main

if __name__ == "__main__":
    main()
