import pytest

@pytest.fixture
def bad_teardown():
    yield
    print("PASSED")
    raise ValueError("teardown")
