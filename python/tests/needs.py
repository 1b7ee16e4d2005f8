"""What a test does without a tool that it needs."""

import os
import unittest


def needs(tool, is_here, why):
    """Skips a test whose tool, by the name that .ci/tools gives it, is not here; fails if MDFSCK_REQUIRE names it, as in `dask,slurm`."""
    required = [name.strip() for name in os.environ.get("MDFSCK_REQUIRE", "").split(",")]
    if not is_here and tool in required:
        raise RuntimeError(f"{why}, and MDFSCK_REQUIRE names {tool}")
    return unittest.skipUnless(is_here, why)
