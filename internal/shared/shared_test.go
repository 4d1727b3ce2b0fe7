// SPDX-License-Identifier: Apache-2.0

package shared

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pipeline"
)

type counter struct{ started, stopped int }

func (c *counter) Start(context.Context, component.Host) error { c.started++; return nil }
func (c *counter) Shutdown(context.Context) error              { c.stopped++; return errors.New("once") }

func create() (*counter, error) { return &counter{}, nil }

func TestInstancesOfOneConfigurationShareOneEngine(t *testing.T) {
	var g Group[*counter]
	cfg, other := &struct{ int }{1}, &struct{ int }{1}
	a, err := g.Join(cfg, create)
	require.NoError(t, err)
	b, _ := g.Join(cfg, create)
	c, _ := g.Join(other, create)
	assert.Same(t, a.Engine(), b.Engine())
	assert.NotSame(t, a.Engine(), c.Engine())

	assert.True(t, a.Claim(pipeline.SignalMetrics))
	assert.False(t, b.Claim(pipeline.SignalMetrics), "a batch is heard once")
	assert.True(t, b.Claim(pipeline.SignalLogs))

	for _, m := range []*Member[*counter]{a, b} {
		require.NoError(t, m.Start(t.Context(), componenttest.NewNopHost()))
	}
	for _, m := range []*Member[*counter]{a, b, a} {
		require.EqualError(t, m.Shutdown(t.Context()), "once")
	}
	assert.Equal(t, counter{1, 1}, *a.Engine())
}

func TestAfterShutdownTheConfigurationBeginsAnew(t *testing.T) {
	var g Group[*counter]
	cfg := &struct{ int }{}
	a, _ := g.Join(cfg, create)
	_ = a.Shutdown(t.Context())
	b, _ := g.Join(cfg, create)
	assert.NotSame(t, a.Engine(), b.Engine())
}

func TestAnEngineThatCannotBeMadeIsNotKept(t *testing.T) {
	var g Group[*counter]
	cfg := &struct{ int }{}
	_, err := g.Join(cfg, func() (*counter, error) { return nil, errors.New("no") })
	require.EqualError(t, err, "no")
	_, err = g.Join(cfg, create)
	require.NoError(t, err)
}
