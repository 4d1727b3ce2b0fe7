// SPDX-License-Identifier: Apache-2.0

package gpuguardextension

import "strconv"

func itoa(n int) string { return strconv.Itoa(n) }
