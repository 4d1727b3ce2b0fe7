// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/internal/checkpoint"
)

// State is what a component keeps. It is cut into parts, of which those are written that have changed since they were taken last.
// Each method takes the component's mutex: nobody is heard while a part is taken, and all is as of one moment.
type State interface {
	// Take takes what has changed. What it returns shares nothing with what goes on.
	Take() Snapshot
	// Kept says that what was taken last is written; Lost that it is not, so that the next Take takes all.
	Kept()
	Lost()
	// TakeUp takes up all parts, and returns what is to be said of them. After an error, Forget makes it begin empty.
	TakeUp(parts map[string][]byte) ([]zap.Field, error)
	Forget() error
}

// Snapshot is a state as of one moment.
type Snapshot interface {
	// Encode writes it into parts. It takes longer than to take it, so it is done without the mutex.
	Encode(to *Parts)
}

// Keeper writes the state of a component into a storage, and reads it.
type Keeper struct {
	State   State
	Own     *Telemetry
	Logger  *zap.Logger
	Now     func() time.Time
	Name    string // of the component, before the names of its values
	Costs   string // what a crash would lose without a checkpoint
	Unknown string // what is not known where the state begins empty

	client storage.Client // nil without a storage
	store  *checkpoint.Store
}

// Keeps reports whether there is a storage.
func (k *Keeper) Keeps() bool { return k.store != nil }

// Store is where it is written; nil without a storage.
func (k *Keeper) Store() *checkpoint.Store { return k.store }

// Save writes what has changed since the last checkpoint. What could not be written is written with the next one.
func (k *Keeper) Save(ctx context.Context) {
	begin := k.Now()
	parts, err := Encode(k.State.Take())
	if err == nil {
		err = k.store.Save(ctx, parts, nil)
	}
	if err != nil {
		k.State.Lost()
		k.Own.Saved(ctx, k.Now().Sub(begin), 0, false)
		if ctx.Err() == nil {
			k.Logger.Error("the checkpoint was not written: "+k.Costs+" would be lost by a crash", zap.Error(err))
		}
		return
	}
	k.State.Kept()
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	k.Own.Saved(ctx, k.Now().Sub(begin), size, true)
}

// Restore opens a storage and takes up the state that was written last, and reports whether there was one. A state that is
// damaged is set aside: the component starts empty and says so.
func (k *Keeper) Restore(ctx context.Context, host component.Host, in *component.ID, kind component.Kind, owner component.ID) (known bool, err error) {
	if in == nil {
		return false, nil
	}
	k.client, err = checkpoint.Client(ctx, host, *in, kind, owner, "")
	if err != nil {
		return false, err
	}
	k.store = checkpoint.New(k.client, k.Name)
	generation, problems, err := k.store.Load(ctx)
	if err != nil {
		return false, fmt.Errorf("storage: the last checkpoint cannot be read: %w", err)
	}
	for _, problem := range problems {
		k.Logger.Error("a checkpoint is damaged", zap.Error(problem))
		k.Own.Damaged.Add(ctx, 1)
	}
	if len(generation.Parts) == 0 {
		return false, nil
	}
	of := zap.Uint64("checkpoint", generation.Sequence)
	fields, err := k.State.TakeUp(generation.Parts)
	if err != nil {
		k.Logger.Error("the last checkpoint is of no use, so the state begins empty: "+k.Unknown, of, zap.Error(err))
		k.Own.Damaged.Add(ctx, 1)
		return false, k.State.Forget()
	}
	k.Logger.Info("the state is that of the last checkpoint", append([]zap.Field{of}, fields...)...)
	return true, nil
}

// Close gives the storage back.
func (k *Keeper) Close(ctx context.Context) error {
	if k.client == nil {
		return nil
	}
	return k.client.Close(ctx)
}
