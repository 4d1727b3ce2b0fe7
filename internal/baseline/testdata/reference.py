# SPDX-License-Identifier: Apache-2.0
"""Reference values for gamma_test.go, by another implementation.

    python3 -m venv venv && venv/bin/pip install scipy==1.17.1
    venv/bin/python reference.py > reference.json

scipy fits by a root finder (brentq) on the likelihood equation, not by Newton steps on 1/a. The tests read the output and
need neither Python nor scipy.
"""
import json
import numpy as np
import scipy
from scipy import stats

rng = np.random.default_rng(1)
out = {"scipy": scipy.__version__, "fits": [], "minimum": []}
for shape, scale, n in [(0.3, 2, 50), (0.8, 0.1, 60), (1, 1, 100), (2.5, 0.12, 299), (4, 0.05, 1000), (40, 0.005, 60), (3000, 0.0001, 200)]:
    x = rng.gamma(shape, scale, n)
    a, _, b = stats.gamma.fit(x, floc=0)
    g = stats.gamma(a, scale=b)
    qs = [0.001, 0.05, 0.5, 0.9, 0.95, 0.99, 0.999]
    out["fits"].append({
        "n": n, "mean": x.mean(), "meanLog": np.log(x).mean(), "shape": a, "scale": b,
        "q": qs, "quantiles": [g.ppf(q) for q in qs],
        "cdf": [g.cdf(x) for x in [0.01, 0.1, 0.3, 1, 3]],
        "values": list(x) if n <= 100 else [], "ks": stats.kstest(x, g.cdf).statistic,
    })
# The fewest samples of which the largest is above the quantile with 95 % confidence: 1 - q**n >= 0.95.
for q in [0.5, 0.9, 0.95, 0.99, 0.999]:
    n = 1
    while stats.binom.sf(0, n, 1 - q) < 0.95:
        n += 1
    out["minimum"].append({"q": q, "n": n})
print(json.dumps(out, indent=1))
