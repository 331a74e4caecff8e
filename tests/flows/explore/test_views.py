from tests.flows.explore.browsing import opened


def test_ranking__lists_models_without_a_console_error(chromium, address):
    with opened(chromium, address) as at:
        at.go("ranking")

        assert at.page.locator("tbody tr").count() == 4
        assert at.faults == []
