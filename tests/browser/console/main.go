// SPDX-License-Identifier: Apache-2.0

// Command console runs the console extension alone, for the browser tests. It says where it listens, and ends when its
// standard input does.
package main

import (
	"context"
	"flag"
	"io"
	"log"
	"os"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/xconfmap"
	"go.opentelemetry.io/collector/extension"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/extension/consoleextension"
)

func main() {
	endpoint := flag.String("endpoint", "localhost:0", "where to listen")
	queryURL := flag.String("query-url", "http://localhost:9090", "the Prometheus to ask")
	traceURL := flag.String("trace-url", "", "where traces are shown")
	flag.Parse()
	if err := run(*endpoint, *queryURL, *traceURL); err != nil {
		log.Fatal(err)
	}
}

func run(endpoint, queryURL, traceURL string) error {
	factory := consoleextension.NewFactory()
	cfg := factory.CreateDefaultConfig()
	conf := confmap.NewFromStringMap(map[string]any{"endpoint": endpoint, "query_url": queryURL, "trace_url": traceURL})
	if err := conf.Unmarshal(cfg); err != nil {
		return err
	}
	if err := xconfmap.Validate(cfg); err != nil {
		return err
	}
	logger, err := zap.NewDevelopment()
	if err != nil {
		return err
	}
	set := extension.Settings{ID: component.NewID(factory.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	set.Logger = logger
	ctx := context.Background()
	ext, err := factory.Create(ctx, set, cfg)
	if err != nil {
		return err
	}
	if err := ext.Start(ctx, componenttest.NewNopHost()); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return ext.Shutdown(ctx)
}
