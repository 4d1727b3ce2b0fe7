// SPDX-License-Identifier: Apache-2.0

// Package frame is what stands around the core of a component that hears an intake, judges in event time, tells its results and
// outlives its process: its ticks, its checkpoints, and what it says of itself. What is judged, and how, is the component's own.
//
//	own, err := frame.NewTelemetry(set.TelemetrySettings, frame.Spec{Scope: metadata.ScopeName, Component: "slo", …})
//	keeper := frame.Keeper{State: e, Own: own, …}
//	known, err := keeper.Restore(ctx, host)
//	work.Every(frame.Tick, e.advance)
//	work.Every(cfg.CheckpointInterval, keeper.Save)
//	…
//	err = work.Stop(ctx)
package frame
