"""Settings that every test shares."""

import os
import signal

from hypothesis import settings

pytest_plugins = ["tests.tiers"]

# No deadline: a busy machine is no bug. In CI the same examples each time, so that a red run can be repeated.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")

# A shell script that runs tests in the background (`make test &`) has them ignore Ctrl-C, and all their children too.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
