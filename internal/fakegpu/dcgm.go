// SPDX-License-Identifier: Apache-2.0

package fakegpu

import "path/filepath"

// DCGMLibrary is the name of the fake DCGM in the folder that BuildDCGM is given.
const DCGMLibrary = "libdcgm.so.4"

// Rules of a scenario that only the fake DCGM knows, besides those by the names of its functions (with codes of DCGM, such as
// -21 for a host engine that is away).
const (
	// RuleHostEngine is another host engine for each Return: sessions with the one before are not valid any more.
	RuleHostEngine = "hostengine"
	// RuleProfiling is the code that watching a profiling field returns, such as -36 where profiling is not supported.
	RuleProfiling = "profiling"
	// RuleField with the number of a field, such as dcgm.1002, is about its value: below 0, a status.
	RuleField = "dcgm."
	// Zero is the Return of RuleField that reads 0, as profiling does after some Xids.
	Zero = 1
	// NotRenewed is the Return of RuleField that is an hour old.
	NotRenewed = 2
)

// BuildDCGM makes the fake DCGM in dir and returns its path. The functions in missing are not in it. In its Stats, EventSets
// are sessions. It needs gcc.
func BuildDCGM(dir string, missing ...string) (string, error) {
	target := filepath.Join(dir, DCGMLibrary)
	return target, compile(target, []string{"scenario.c", "fakedcgm.c"}, missing)
}

// DCGMStats is NVMLStats for the fake DCGM.
func DCGMStats(path string) (Stats, error) { return readStats(path + ".dcgm.stats") }
