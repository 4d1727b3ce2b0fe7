# SPDX-License-Identifier: Apache-2.0
"""Reference values for the statistics of this package, by scipy, statsmodels and pymannkendall.

    python3 -m venv venv && venv/bin/pip install scipy==1.17.1 statsmodels==0.15.0 pymannkendall==1.4.3
    venv/bin/python reference.py > reference.json

The tests read the output and need neither Python nor any of them.
"""
import itertools
import json
import numpy as np
import pymannkendall
import scipy
import statsmodels
import statsmodels.api as sm
from scipy import stats
from statsmodels.tsa.stattools import acf

rng = np.random.default_rng(8)
out = {"scipy": scipy.__version__, "statsmodels": statsmodels.__version__, "slopes": [], "hamedRao": [], "traffic": [], "bends": [], "levels": []}


def floats(a):
    return [float(v) for v in a]


for n, slope, rho, decimals in [(10, 0.0, 0.0, 6), (24, 0.5, 0.0, 6), (48, 0.05, 0.6, 6), (64, 0.02, 0.9, 6), (63, 0.1, 0.0, 0), (64, 0.0, 0.3, 1), (40, -0.3, 0.5, 6)]:
    x = np.cumsum(rng.choice([1.0, 1.0, 2.0], n))
    e = np.zeros(n)
    for i in range(1, n):
        e[i] = rho * e[i - 1] + rng.normal()
    y = np.round(slope * x + e, decimals)
    fit = stats.theilslopes(y, x, alpha=0.95)
    mk = pymannkendall.original_test(y)
    residuals = y - (np.median(y) - fit.slope * np.median(x)) - fit.slope * x
    out["slopes"].append({
        "x": floats(x), "y": floats(y), "slope": float(fit.slope), "intercept": float(fit.intercept), "low": float(fit.low_slope), "high": float(fit.high_slope),
        "s": float(mk.s), "variance": float(mk.var_s), "p": float(stats.norm.sf(mk.z)) if mk.s > 0 else 1.0,
        "lag1": float(acf(stats.rankdata(residuals), nlags=1, fft=False)[1]),
    })
# The variance of S, for normal values whose correlation is rho to the power of the lag, by the sum that Hamed and Rao give.
for n, rho in [(24, 0.0), (24, 0.3), (64, 0.5), (64, 0.9), (48, 0.97)]:
    factor = 1 + 2 / (n * (n - 1) * (n - 2)) * sum((n - k) * (n - k - 1) * (n - k - 2) * rho**k for k in range(1, n - 2))
    out["hamedRao"].append({"n": n, "rho": rho, "factor": factor})
for n in (24, 48, 64):
    x = np.arange(n) * 225.0
    running = np.maximum(20 + 8 * np.sin(x / 9000) + rng.normal(0, 2, n), 0)
    cache = np.clip(0.5 + 0.2 * np.cos(x / 5000) + rng.normal(0, 0.05, n), 0, 1)
    y = 3.0 * running + 40 * cache + 0.001 * x + rng.normal(0, 1, n)
    model = sm.OLS(y, sm.add_constant(np.column_stack([running, cache, x]))).fit()
    r2 = sm.OLS(x, sm.add_constant(np.column_stack([running, cache]))).fit().rsquared
    adjusted = y - model.params[1] * (running - running.mean()) - model.params[2] * (cache - cache.mean())
    out["traffic"].append({"x": floats(x), "y": floats(y), "running": floats(running), "cache": floats(cache), "left": float(1 - r2), "adjusted": floats(adjusted)})
for n, at, before, after in [(30, 12, 1.0, 0.1), (64, 40, 0.5, 1.5), (48, 10, 2.0, 0.0)]:
    x = np.arange(n) * 60.0
    y = before * np.minimum(x, x[at]) + after * np.maximum(x - x[at], 0) + rng.normal(0, 20, n)
    fits = [(sm.OLS(y, sm.add_constant(np.column_stack([x, np.maximum(x - x[k], 0)]))).fit(), k) for k in range(6, n - 6)]
    best = min(fits, key=lambda f: f[0].ssr)[0]
    line = sm.OLS(y, sm.add_constant(x)).fit()
    out["bends"].append({"x": floats(x), "y": floats(y), "line": float(line.ssr), "slope": float(line.params[1]), "left": float(best.ssr),
                         "before": float(best.params[1]), "after": float(best.params[1] + best.params[2])})
for n in (24, 30):  # all ways to cut y into levels of at least three values
    y = np.round(np.concatenate([np.zeros(n // 3), np.full(n - n // 3, 5.0)]) + rng.normal(0, 1, n), 3)

    def left(cuts):
        edges = [0, *cuts, n]
        return sum(float(np.sum((y[a:b] - y[a:b].mean()) ** 2)) for a, b in itertools.pairwise(edges))

    best = []
    for steps in range(4):
        ways = [c for c in itertools.combinations(range(3, n - 2), steps) if all(b - a >= 3 for a, b in itertools.pairwise([0, *c, n]))]
        best.append(min(left(c) for c in ways))
    out["levels"].append({"y": floats(y), "left": best})
print(json.dumps(out, indent=1))
