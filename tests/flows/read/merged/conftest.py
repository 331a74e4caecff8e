from tests.flows.read.merged.two_teams import made, ours, pair  # noqa: F401 - fixtures of the tests here
