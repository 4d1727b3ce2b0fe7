// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/scenario"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// output is a writer that a test reads while llmsim writes.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func call(ctx context.Context, args ...string) (status int, stdout, stderr string) {
	var out, err output
	status = Main(ctx, args, &out, &err)
	return status, out.String(), err.String()
}

// readme returns the README and moves to the repository's root, where its
// examples are meant to be run.
func readme(t *testing.T) string {
	t.Helper()
	t.Chdir("../../../..")
	text, err := os.ReadFile("cmd/llmsim/README.md")
	require.NoError(t, err)
	return string(text)
}

// blocks are the fenced blocks of a language.
func blocks(text, language string) []string {
	var out []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

func TestEveryCommandOfTheREADMERuns(t *testing.T) {
	text := readme(t)
	commands, requests := 0, []string{}
	for _, line := range strings.Split(strings.Join(blocks(text, "sh"), ""), "\n") {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0:
		case fields[0] == "curl":
			requests = append(requests, fields[len(fields)-1])
		default:
			require.Equal(t, "llmsim", fields[0], line)
			args := fields[1:]
			once := strings.Contains(line, "-once")
			if !once {
				args = append(args, "-duration", "300ms", "-listen", "127.0.0.1:0", "-control", "127.0.0.1:0")
			}
			status, stdout, stderr := call(context.Background(), args...)
			assert.Zero(t, status, "%s: %s", line, stderr)
			assert.Equal(t, once, strings.Contains(stdout, "vllm:time_to_first_token_seconds_count"), line)
			commands++
		}
	}
	assert.GreaterOrEqual(t, commands, 5)
	require.GreaterOrEqual(t, len(requests), 4)

	// The addresses are the defaults', whose ports this machine may need elsewhere.
	replica, control, stop := live(t)
	defer stop()
	for _, url := range requests {
		url = strings.Replace(url, "127.0.0.1:8000", replica, 1)
		url = strings.Replace(url, "127.0.0.1:7999", control, 1)
		resp, err := http.Get(url)
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, resp.StatusCode, url)
		require.NoError(t, resp.Body.Close())
	}
}

// live starts a simulation and returns where it listens.
func live(t *testing.T) (replica, control string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var stderr output
	done := make(chan int)
	go func() {
		done <- Main(ctx, []string{"-listen", "127.0.0.1:0", "-control", "127.0.0.1:0"}, &output{}, &stderr)
	}()
	line := regexp.MustCompile(`at (\S+), speed 1; http://(\S+)/targets`)
	require.Eventually(t, func() bool { return line.MatchString(stderr.String()) }, time.Minute, 10*time.Millisecond)
	m := line.FindStringSubmatch(stderr.String())
	return m[1], m[2], func() {
		cancel()
		assert.Zero(t, <-done, "a signal is no failure")
		http.DefaultClient.CloseIdleConnections()
	}
}

func TestEveryScenarioOfTheREADMEIsValid(t *testing.T) {
	found := 0
	for _, block := range blocks(readme(t), "yaml") {
		if strings.HasPrefix(block, "# collector") {
			continue
		}
		s, err := scenario.Parse("README.md", []byte(block), 1)
		require.NoError(t, err)
		assert.Equal(t, scenario.Default().Replicas[0].Engine, s.Replicas[0].Engine, "the reference shows the defaults")
		found++
	}
	assert.Equal(t, 1, found)
}

func TestREADMEListsEveryFlagWithItsDefault(t *testing.T) {
	text := readme(t)
	var want []string
	newFlags(&settings{}).VisitAll(func(f *flag.Flag) {
		def := ""
		if f.DefValue != "" {
			def = "`" + f.DefValue + "` "
		}
		_, usage := flag.UnquoteUsage(f)
		want = append(want, fmt.Sprintf("| `-%s` | %s| %s |", f.Name, def, usage))
	})
	for _, row := range want {
		assert.Contains(t, text, row)
	}
	assert.Equal(t, len(want), len(regexp.MustCompile("(?m)^\\| `-").FindAllString(text, -1)), "and no other")
}

func TestWrongCallsSayWhatWouldBeRight(t *testing.T) {
	f := func(status int, want string, args ...string) {
		t.Helper()
		got, _, stderr := call(context.Background(), args...)
		assert.Equal(t, status, got, args)
		assert.Contains(t, stderr, want, args)
	}
	f(2, "-speed: 0 is not above 0", "-speed", "0")
	f(2, "-rate: -1 is not in", "-rate", "-1")
	f(2, "-duration: -1s is below 0", "-duration", "-1s")
	f(2, `"now": llmsim takes flags only`, "now")
	f(2, "flag provided but not defined", "-nonsense")
	f(1, "-once: this traffic has no end", "-once")
	f(1, "no such file", "-scenario", "missing.yaml")
	f(1, "no such file", "-trace", "missing.csv")
	f(1, "-once: this traffic has no end", "-once", "-loop", "-trace", "../../../../testdata/traffic/azure/conv_2000.csv")
	f(0, "Usage of llmsim", "-h")
}
