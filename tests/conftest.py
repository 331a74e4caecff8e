"""Settings that every test shares."""

import os

from hypothesis import settings

# No deadline: a busy machine is no bug. In CI the same examples each time, so that a red run can be repeated.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")
