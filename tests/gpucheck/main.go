// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// settings are the flags.
type settings struct {
	collector, smi, source, library, out string
	rounds                               int
	pause                                time.Duration
}

func main() {
	var s settings
	flag.StringVar(&s.collector, "otelcol-llm", "bin/otelcol-llm", "the Collector")
	flag.StringVar(&s.smi, "nvidia-smi", "nvidia-smi", "nvidia-smi")
	flag.StringVar(&s.source, "source", "auto", "the receiver's source: auto, nvml or dcgm")
	flag.StringVar(&s.library, "nvml-library", "", "libnvidia-ml.so.1; empty is where the system has it")
	flag.StringVar(&s.out, "out", "docs/gpu-check", "the folder that the page is written to")
	flag.IntVar(&s.rounds, "rounds", 20, "how often nvidia-smi is asked")
	flag.DurationVar(&s.pause, "pause", 500*time.Millisecond, "how long it rests in between")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	page, err := s.run(ctx)
	stop()
	if page != "" {
		fmt.Println(page)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gpu-check:", err)
		os.Exit(1)
	}
}

// errDiffer is the error when the receiver and nvidia-smi do not say the same.
var errDiffer = errors.New("the receiver and nvidia-smi do not say the same; the page says where")

// run writes a page and returns its path. It is an error, too, when the two do not say the same.
func (s settings) run(ctx context.Context) (page string, err error) {
	if s.rounds < 2 {
		return "", fmt.Errorf("-rounds: %d: what is compared lies between two of them", s.rounds)
	}
	tool, err := newSMI(ctx, s.smi, fields())
	if err != nil {
		return "", err
	}
	first, err := tool.sample(ctx)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "gpucheck")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	c, err := startCollector(s.collector, s.source, s.library, dir)
	if err != nil {
		return "", err
	}
	samples, err := s.look(ctx, tool, c)
	if stopped := c.stop(); stopped != nil {
		err = errors.Join(err, stopped)
	}
	if err != nil {
		_, _ = io.Copy(os.Stderr, c.log) // a terminal: there is nobody to tell
		return "", err
	}
	points, resources := c.said()
	verdicts, alone := compare(samples, points, resources)
	page, err = write(s.out, report{
		when: time.Now(), gpus: first.gpus, rounds: len(samples), seconds: samples[len(samples)-1].ended.Sub(samples[0].begun).Seconds(),
		source: s.source, verdicts: verdicts, alone: alone, instances: instances(resources), log: c.log.String(),
	})
	if err == nil && failures(verdicts) > 0 {
		err = errDiffer
	}
	return page, err
}

// look asks nvidia-smi again and again while the receiver reads.
func (s settings) look(ctx context.Context, tool *smi, c *collector) (samples []*sample, err error) {
	waiting, cancel := context.WithTimeout(ctx, 30*time.Second)
	err = c.wait(waiting)
	cancel()
	for err == nil && len(samples) < s.rounds {
		var at *sample
		if at, err = tool.sample(ctx); err == nil {
			samples = append(samples, at)
			select {
			case <-ctx.Done():
				err = ctx.Err()
			case <-time.After(s.pause):
			}
		}
	}
	return samples, err
}

func instances(resources map[string]map[string]string) (n int) {
	for _, r := range resources {
		if r["hw.parent"] != "" {
			n++
		}
	}
	return n
}

func failures(verdicts []verdict) (n int) {
	for i := range verdicts {
		if verdicts[i].failed() {
			n++
		}
	}
	return n
}

// write puts the page where it belongs.
func write(folder string, r report) (path string, err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	path = filepath.Join(folder, r.file())
	return path, os.WriteFile(path, []byte(r.markdown()), 0o644)
}
