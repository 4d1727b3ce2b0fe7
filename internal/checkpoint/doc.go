// SPDX-License-Identifier: Apache-2.0

// Package checkpoint keeps the state of a component in any storage extension, so that it survives a crash.
//
// A state is a set of named parts, of which only the changed ones are written. Two generations are kept: whatever the
// storage does halfway, the one before the one that is being written stays wholly readable. Every value has a checksum
// (CRC-32C); what does not check is passed over and told, and never mixed with anything else.
//
//	client, err := checkpoint.Client(ctx, host, *cfg.Storage, component.KindConnector, set.ID, "")
//	store := checkpoint.New(client, "slo")
//	state, problems, err := store.Load(ctx)
//	… every interval, and at shutdown …
//	err = store.Save(ctx, map[string][]byte{"series/7": data}, []string{"series/8"})
//
// How it lies in the storage, below the prefix:
//
//	manifest/a, manifest/b    the newest generation and the one before, which take turns
//	part/<name>/a, …/b        two slots a part; the manifest says which one holds it
package checkpoint
