"""The data type that numpy lacks: importing this makes `np.dtype("bfloat16")` known, by the package ml_dtypes.

Choices: docs/choices.md, Numbers.
"""

import ml_dtypes
import numpy as np
from ml_dtypes import finfo as finfo

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
"""One sign bit, 8 of the exponent, 7 of the fraction: the upper half of a float32."""
