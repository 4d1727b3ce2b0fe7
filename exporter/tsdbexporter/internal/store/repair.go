// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/wlog"
)

// Repair is what was done to a part of the database that was damaged.
type Repair struct {
	What string // wal, or the name of a block
	How  string // cut, or where it was moved
	Lost string
	Why  string
}

// damagedFolder takes what cannot be opened. The TSDB does not look into it.
const damagedFolder = "damaged"

// repairing opens a database whose directory is locked. What keeps it from opening is moved aside, first blocks, then the head: a
// day that is lost is less than a Collector that does not start. The TSDB itself cuts a write-ahead log that a crash has left torn.
func repairing(dir string, open func() error, done *[]Repair) error {
	for name, why := range brokenBlocks(dir) {
		if err := setAside(dir, name, why, done); err != nil {
			return err
		}
	}
	err := open()
	if err == nil || !mendable(err) {
		return err
	}
	for _, name := range []string{"wal", wlog.WblDirName, "chunks_head"} {
		if moveErr := setAside(dir, name, err, done); moveErr != nil {
			return errors.Join(err, moveErr)
		}
	}
	return open()
}

// mendable says whether an error can be one of damaged files, rather than of the place where they are.
func mendable(err error) bool {
	for _, other := range []error{syscall.EWOULDBLOCK, fs.ErrPermission, syscall.EROFS, syscall.ENOSPC, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOTDIR} {
		if errors.Is(err, other) {
			return false
		}
	}
	return true
}

// explain says what would be right.
func explain(dir string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EWOULDBLOCK): // of the lock
		return fmt.Errorf("directory %s: another process, or another tsdb exporter, uses it: give each its own: %w", dir, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("directory %s: must be writable: %w", dir, err)
	}
	return fmt.Errorf("directory %s: %w", dir, err)
}

// brokenBlocks are the blocks that cannot be opened, with why. The TSDB would not start for some of them, and not mention others.
func brokenBlocks(dir string) map[string]error {
	broken := map[string]error{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return broken
	}
	for _, entry := range entries {
		if _, err := ulid.ParseStrict(entry.Name()); err != nil || !entry.IsDir() {
			continue
		}
		if err := openBlock(filepath.Join(dir, entry.Name())); err != nil {
			broken[entry.Name()] = err
		}
	}
	return broken
}

// openBlock opens and closes a block. Some damage makes the TSDB panic.
func openBlock(dir string) (err error) {
	defer func() {
		if why := recover(); why != nil {
			err = fmt.Errorf("cannot be read: %v", why)
		}
	}()
	block, err := tsdb.OpenBlock(promslog.NewNopLogger(), dir, nil, nil)
	if err != nil {
		return err
	}
	return block.Close()
}

// setAside moves a part of the database to where it is not looked at. It is the operator's to delete.
func setAside(dir, name string, why error, done *[]Repair) error {
	lost := "what was in it: the last hours"
	if _, err := ulid.ParseStrict(name); err == nil {
		lost = "the hours that are in it"
	}
	from := filepath.Join(dir, name)
	if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(dir, damagedFolder), 0o750); err != nil {
		return err
	}
	to := filepath.Join(dir, damagedFolder, fmt.Sprintf("%s-%d", name, time.Now().UnixNano()))
	if err := os.Rename(from, to); err != nil {
		return err
	}
	*done = append(*done, Repair{What: name, How: "moved to " + to, Lost: lost, Why: why.Error()})
	return nil
}
