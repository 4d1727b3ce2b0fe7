// SPDX-License-Identifier: Apache-2.0

//go:build unix

package store

import "syscall"

// freeBytes is how much of the disk that holds a directory can still be written.
func freeBytes(dir string) (uint64, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return 0, err
	}
	return uint64(fs.Bavail) * uint64(fs.Bsize), nil //nolint:unconvert // the types differ between systems
}
