import limits


def test_set_limit():
    assert limits.set_limit(20) == 20


def test_peak():
    assert limits.peak() == 20
