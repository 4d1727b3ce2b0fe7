// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const traffic = "../../../../testdata/traffic/"

func TestAzureTraceIsReadToItsLastRow(t *testing.T) {
	rows, err := Load(traffic + "azure/conv_2000.csv")
	require.NoError(t, err)
	require.Len(t, rows, 2000)
	assert.Equal(t, Row{PromptTokens: 374, OutputTokens: 44}, rows[0])
	assert.Equal(t, Row{At: 4314579 * time.Microsecond, PromptTokens: 396, OutputTokens: 109}, rows[1])
}

func TestMooncakeTraceKeepsItsHashes(t *testing.T) {
	rows, err := Load(traffic + "mooncake/conversation_200.jsonl")
	require.NoError(t, err)
	require.Len(t, rows, 200)
	assert.Equal(t, 6758, rows[0].PromptTokens)
	assert.Len(t, rows[0].Prefix, 14)
	assert.Equal(t, 512, rows[0].PrefixTokens)
	assert.Equal(t, 72*time.Second, rows[199].At)
}

func TestBadTracesAreRefusedByLine(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		_, err := Read(strings.NewReader(in))
		assert.ErrorContains(t, err, want)
	}
	const h = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
	f("", "empty: want Azure CSV")
	f(h, "no rows")
	f("a,b,c\n", `line 1: column 1 is "a", want "TIMESTAMP"`)
	f(h+"yesterday,1,2\n", `line 2: TIMESTAMP: "yesterday" is no time`)
	f(h+"2023-11-16 18:15:46.1,1,x\n", `line 2: GeneratedTokens: "x" is no count`)
	f(h+"2023-11-16 18:15:46.1,-1,2\n", `line 2: ContextTokens: "-1" is no count`)
	f(h+"2023-11-16 18:15:46.1,1,2\n2023-11-16 18:15:45.1,1,2\n", "line 3: TIMESTAMP: 2023-11-16 18:15:45.1 is before the line above it")
	f(h+"2023-11-16 18:15:46.1,1\n", "wrong number of fields")
	f("{\n", "line 1: ")
	f(`{"timestamp": 1}`, "line 1: want timestamp, input_length and output_length")
	f(`{"timestamp": 1, "input_length": -1, "output_length": 1}`, "line 1: negative")
	f("{\"timestamp\": 2, \"input_length\": 1, \"output_length\": 1}\n{\"timestamp\": 1, \"input_length\": 1, \"output_length\": 1}", "line 2: timestamp: 1 is before")
}

func FuzzRead(f *testing.F) {
	f.Add("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.1,1,2\n")
	f.Add(`{"timestamp": 1, "input_length": 1, "output_length": 1, "hash_ids": [1]}`)
	f.Fuzz(func(t *testing.T, in string) {
		rows, err := Read(strings.NewReader(in))
		if err != nil {
			return
		}
		require.NotEmpty(t, rows)
		for i, r := range rows {
			require.GreaterOrEqual(t, r.PromptTokens, 0)
			require.True(t, i == 0 || r.At >= rows[i-1].At)
		}
	})
}

func TestLoopGoesOnWithoutASeam(t *testing.T) {
	s := Replay([]Row{{At: 0}, {At: 2 * time.Second}, {At: 4 * time.Second}}, true)
	for i := range 9 {
		row, ok := s.Next()
		require.True(t, ok)
		assert.Equal(t, time.Duration(i)*2*time.Second, row.At)
	}
}

func TestReplayEnds(t *testing.T) {
	s := Replay([]Row{{PromptTokens: 1}}, false)
	_, ok := s.Next()
	assert.True(t, ok)
	_, ok = s.Next()
	assert.False(t, ok)
	_, ok = Replay(nil, true).Next()
	assert.False(t, ok, "an empty trace has nothing to repeat")
}

func TestPoissonKeepsItsRateAndItsSeed(t *testing.T) {
	draw := func(seed uint64) []Row {
		s := Poisson(5, nil, seed)
		out := make([]Row, 10_000)
		for i := range out {
			out[i], _ = s.Next()
		}
		return out
	}
	rows := draw(1)
	assert.InEpsilon(t, 2000, rows[len(rows)-1].At.Seconds(), 0.05)
	assert.Equal(t, rows, draw(1))
	assert.NotEqual(t, rows, draw(2))
	for _, r := range rows {
		require.Positive(t, r.PromptTokens)
		require.Positive(t, r.OutputTokens)
	}
}

func TestPoissonDrawsLengthsFromATrace(t *testing.T) {
	s := Poisson(1, []Row{{At: time.Hour, PromptTokens: 7, OutputTokens: 3}}, 1)
	row, ok := s.Next()
	assert.True(t, ok)
	assert.Equal(t, 7, row.PromptTokens)
	assert.Less(t, row.At, time.Hour)
}

func TestSharedPrefixGoesToItsShareOfTheRowsWithoutOne(t *testing.T) {
	rows := make([]Row, 1000)
	for i := range rows {
		rows[i] = Row{PromptTokens: 100}
	}
	rows[0].PromptTokens = 10
	rows[1].Prefix = []uint64{9}
	s := WithSharedPrefix(Replay(rows, false), SharedPrefix{Tokens: 64, Share: 0.3, Groups: 2}, 1)
	groups := map[uint64]int{}
	for i := range rows {
		row, _ := s.Next()
		switch {
		case i == 0:
			assert.Nil(t, row.Prefix, "a prompt shorter than the prefix")
		case i == 1:
			assert.Equal(t, []uint64{9}, row.Prefix)
		case row.Prefix != nil:
			assert.Equal(t, 64, row.PrefixTokens)
			groups[row.Prefix[0]]++
		}
	}
	assert.Len(t, groups, 2)
	assert.InDelta(t, 300, groups[0]+groups[1], 45)
}
