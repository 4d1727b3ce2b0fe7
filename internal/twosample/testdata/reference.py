# SPDX-License-Identifier: Apache-2.0
"""Reference values for the tests of this package, by scipy.

    python3 -m venv venv && venv/bin/pip install scipy==1.17.1
    venv/bin/python reference.py > reference.json

The tests read the output and need neither Python nor scipy.
"""
import json
import numpy as np
import scipy
from scipy import stats

rng = np.random.default_rng(2)
out = {"scipy": scipy.__version__, "mannWhitney": [], "fisher": [], "binomial": [], "falseDiscovery": []}

for n, m, shift, decimals in [(20, 25, 0.0, 6), (100, 40, 0.3, 6), (60, 60, -0.2, 6), (150, 80, 0.2, 1), (200, 200, 0.0, 0)]:
    a = np.round(rng.lognormal(0, 0.5, n) + 1, decimals)
    b = np.round(rng.lognormal(shift, 0.5, m) + 1, decimals)
    r = stats.mannwhitneyu(b, a, alternative="greater", method="asymptotic")
    ratios = np.divide.outer(b, a)
    out["mannWhitney"].append({
        "reference": list(a), "candidate": list(b), "u": r.statistic, "p": r.pvalue,
        "ratio": float(np.median(ratios)),  # Hodges-Lehmann, of the logarithms
    })
for bad, n, ref_bad, ref_n in [(0, 10, 0, 10), (5, 500, 0, 20000), (5, 500, 20, 20000), (3, 10, 1, 10), (10, 10, 10, 10), (1, 500, 300, 20000),
                               (40, 500, 1000, 20000), (300, 500, 10000, 20000), (250, 500, 12000, 20000), (7, 9, 3, 400), (2000, 100000, 1500, 100000), (9, 10, 95, 100)]:
    p = stats.fisher_exact([[bad, n - bad], [ref_bad, ref_n - ref_bad]], alternative="greater").pvalue
    out["fisher"].append({"bad": bad, "n": n, "refBad": ref_bad, "refN": ref_n, "p": p})
for bad, n, share in [(0, 10, 0.1), (3, 300, 0.01), (12, 300, 0.01), (300, 300, 0.9), (150, 300, 0.5), (40, 100000, 0.0005)]:
    out["binomial"].append({"bad": bad, "n": n, "share": share, "p": stats.binom.sf(bad - 1, n, share)})
for ps in [[0.01], [0.001, 0.2, 0.03, 0.03, 0.9], list(np.round(rng.random(40) ** 3, 6))]:
    out["falseDiscovery"].append({"p": ps, "adjusted": list(stats.false_discovery_control(ps))})
print(json.dumps(out, indent=1))
