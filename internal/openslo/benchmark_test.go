// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"fmt"
	"strings"
	"testing"
)

func BenchmarkParse(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprintf("slos=%d", n), func(b *testing.B) {
			var doc strings.Builder
			for i := range n {
				name := fmt.Sprintf("slo-%d", i)
				doc.WriteString(threshold(name, name, "metric: a_seconds", "lte", "1") + "\n---\n")
			}
			src := Source{Name: "f", Data: []byte(doc.String())}
			b.SetBytes(int64(len(src.Data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(src); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/slo")
		})
	}
}
