# SPDX-License-Identifier: Apache-2.0
"""Reference values for the tests of this package, by scipy; those of large numbers by mpmath, with the first term to 60 digits
and the others summed one by one.

    python3 -m venv venv && venv/bin/pip install scipy==1.17.1 mpmath==1.4.1
    venv/bin/python reference.py > reference.json

The tests read the output and need neither Python nor scipy.
"""
import json
import math
from fractions import Fraction
import mpmath
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

mpmath.mp.dps = 60


def log_choose(n, k):
    return mpmath.loggamma(n + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(n - k + 1)


def summed(first, ratio, x):
    total, term = 1.0, 1.0
    while term > 1e-18 * total:
        term *= ratio(x)
        total += term
        x += 1
    return float(mpmath.exp(first) * total)


def binomial(bad, n, share):
    p = mpmath.mpf(share)
    odds = share / float(1 - p)
    return summed(log_choose(n, bad) + bad * mpmath.log(p) + (n - bad) * mpmath.log(1 - p), lambda x: (n - x) / (x + 1) * odds, bad)


def fisher(bad, n, ref_bad, ref_n):
    k, N = bad + ref_bad, n + ref_n
    return summed(log_choose(k, bad) + log_choose(N - k, n - bad) - log_choose(N, n),
                  lambda x: (k - x) / (x + 1) * ((n - x) / (N - k - n + x + 1)), bad)


out["largeBinomial"], out["largeFisher"] = [], []
for n, share in [(10**6, 0.05), (2**30, 0.5), (2**36, 0.001), (2**36, 0.5), (2**53, 1e-9)]:
    deviation = math.sqrt(n * share * (1 - share))
    for z in [0.1, 3, 30]:
        bad = round(n * share + z * deviation)
        out["largeBinomial"].append({"bad": bad, "n": n, "share": share, "p": binomial(bad, n, share)})
for n, ref_n, share in [(10**6, 10**7, 0.01), (2**36, 2**40, 0.05), (2**40, 2**36, 0.001), (2**52, 2**53, 1e-8)]:
    k = round((n + ref_n) * share)
    mean = Fraction(n * k, n + ref_n)
    deviation = math.sqrt(mean * (1 - Fraction(k, n + ref_n)) * Fraction(ref_n, n + ref_n - 1))
    for z in [0.1, 3, 30]:
        bad = round(mean + Fraction(z) * Fraction(deviation))
        out["largeFisher"].append({"bad": bad, "n": n, "refBad": k - bad, "refN": ref_n, "p": fisher(bad, n, k - bad, ref_n)})
print(json.dumps(out, indent=1))
