# SPDX-License-Identifier: Apache-2.0
"""Prints what an installed package requires here, with local builds (2.13.0+cpu)
replaced by the public version and the torch add-ons that text models do without
left out."""

import re
import sys
from importlib.metadata import requires

from packaging.requirements import Requirement

OPTIONAL = {"torchaudio", "torchcodec", "torchvision"}

for line in requires(sys.argv[1]) or []:
    requirement = Requirement(line)
    if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
        continue
    if requirement.name in OPTIONAL:
        continue
    requirement.marker = None
    print(re.sub(r"\+\w+", "", str(requirement)))
