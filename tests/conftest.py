"""Settings that every test shares."""

import atexit
import os
import shutil
import tempfile

from hypothesis import settings

# No deadline: a busy machine is no bug. In CI the same examples each time, so that a red run can be repeated.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")

# Runs are remembered below the user's home directory; those of tests are forgotten with them.
_STATE = tempfile.mkdtemp(prefix="evalcube-state-")
atexit.register(shutil.rmtree, _STATE, ignore_errors=True)
os.environ["XDG_STATE_HOME"] = _STATE
