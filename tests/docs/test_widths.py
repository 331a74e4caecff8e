"""What `make docs` finds of pages that are wider than a phone's screen."""

import pytest

from tests.docs.widths import PHONE, too_wide

BEGIN = '<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
pytestmark = pytest.mark.browser


def test_too_wide__names_the_pages_that_are(chromium, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "fits.html").write_text(f"{BEGIN}<p>{'word ' * 200}</p>")
    (tmp_path / "scrolls.html").write_text(f"{BEGIN}<pre style='overflow: auto'>{'x' * 300}</pre>")
    (tmp_path / "folder" / "wide.html").write_text(f"{BEGIN}<p>{'x' * 300}</p>")

    found = too_wide(chromium, tmp_path)

    assert list(found) == ["folder/wide.html"]
    assert found["folder/wide.html"] > PHONE
