"""Settings for all tests."""

from hypothesis import settings

# Machines are noisy: a slow example is not a wrong one. The blob repeats a failure elsewhere.
settings.register_profile("viewkeep", deadline=None, print_blob=True)
settings.load_profile("viewkeep")
