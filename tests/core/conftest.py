"""What several tests of the core share and is made once."""

from __future__ import annotations

import pytest

from triledger.core.measured.rows import shipped_tables
from triledger.core.measured.validation import Validation, validate


@pytest.fixture(scope="session")
def shipped() -> Validation:
    """The measurements that come with the program beside their predictions."""
    return validate(shipped_tables())
