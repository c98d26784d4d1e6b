"""What the tests of the test-bed's network share with those of the clusters."""

from tests.workers.clusters.conftest import eventually

__all__ = ["eventually"]
