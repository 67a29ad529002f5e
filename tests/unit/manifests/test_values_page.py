"""The installation page lists every value of the chart."""

from tests.unit.manifests import values_page


def test_the_page_has_the_charts_values():
    _, table, after = values_page.in_page(values_page.PAGE.read_text())
    assert after, f"the page has lost its marks {values_page.BEGIN!r} and {values_page.END!r}"
    assert table == values_page.table(), "write it again: python tests/unit/manifests/values_page.py"
