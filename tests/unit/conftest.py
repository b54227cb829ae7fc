"""Settings of all property tests."""

from hypothesis import settings

# A deadline of 200 ms for each example, Hypothesis' default, measures how busy the machine is: the tests failed at
# times beside other work. A test that really hangs ends by pytest's timeout.
settings.register_profile("ganger", deadline=None)
settings.load_profile("ganger")
