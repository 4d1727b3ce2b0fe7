// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"fmt"
	"runtime/debug"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// Client opens the storage of the component owner in the storage extension storageID. name tells several storages of
// one component apart and may be empty. The caller closes the client at shutdown; one client at a time may be open. What would
// be a panic of the storage is an error of the client.
func Client(ctx context.Context, host component.Host, storageID component.ID, kind component.Kind, owner component.ID, name string) (storage.Client, error) {
	extension, ok := host.GetExtensions()[storageID]
	if !ok {
		return nil, fmt.Errorf("storage: no extension %q is running: add it under extensions and service.extensions", storageID)
	}
	keeper, ok := extension.(storage.Extension)
	if !ok {
		return nil, fmt.Errorf("storage: extension %q keeps no state: name a storage extension, such as file_storage", storageID)
	}
	var client storage.Client
	err := guard(func() (err error) {
		client, err = keeper.GetClient(ctx, kind, owner, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("storage: %q: %w", storageID, err)
	}
	return &guarded{client}, nil
}

// guarded is a client in which damage that shows when something is read or written is an error, too. It is for those who do
// not guard each call, such as the queue of an exporter.
type guarded struct{ client storage.Client }

// Get returns the value of a key.
func (g *guarded) Get(ctx context.Context, key string) (value []byte, err error) {
	err = guard(func() (err error) {
		value, err = g.client.Get(ctx, key)
		return err
	})
	return value, err
}

// Set writes a value.
func (g *guarded) Set(ctx context.Context, key string, value []byte) error {
	return guard(func() error { return g.client.Set(ctx, key, value) })
}

// Delete removes a key.
func (g *guarded) Delete(ctx context.Context, key string) error {
	return guard(func() error { return g.client.Delete(ctx, key) })
}

// Batch does several things at once.
func (g *guarded) Batch(ctx context.Context, ops ...*storage.Operation) error {
	return guard(func() error { return g.client.Batch(ctx, ops...) })
}

// Close closes it.
func (g *guarded) Close(ctx context.Context) error {
	return guard(func() error { return g.client.Close(ctx) })
}

// guard makes an error of a panic. Where a file is damaged, file_storage's database panics, and where one was cut short,
// reading its memory map is a fault, which ends the process even where file_storage would recreate the file.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the storage is damaged, move its file away or let the extension recreate it: %v", r)
		}
	}()
	return f()
}
