// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/prometheus/prometheus/tsdb/wlog"
)

// unwritten is a file that says how many bytes the chunks have that are in the write-ahead log alone, at most: they are made and written
// when it is read. The TSDB panics when it cannot write them, in a goroutine of its own, so it has to be known before whether there is
// room. It is written in place, which needs none.
type unwritten struct{ file *os.File }

const (
	unwrittenFile = "unwritten"
	// unknown is what it says while the log is read: when a process finds that, another has died of it.
	unknown = -1
)

func openUnwritten(dir string) (unwritten, error) {
	file, err := os.OpenFile(filepath.Join(dir, unwrittenFile), os.O_RDWR|os.O_CREATE, 0o600)
	return unwritten{file}, err
}

// set keeps a number of bytes, or unknown.
func (u unwritten) set(bytes int64) error {
	_, err := u.file.WriteAt(fmt.Appendf(nil, "%20d\n", bytes), 0)
	return err
}

// keepPending keeps what is pending for the next start, when it is news. s.mu is held.
func (s *Store) keepPending() {
	pending := s.pending()
	if pending == s.kept {
		return
	}
	s.kept = pending
	if err := s.unwritten.set(pending); err != nil {
		s.log.Warn("the next start may find no room on the disk and not know it", "err", err)
	}
}

// need is how many bytes reading the log may write.
func (u unwritten) need(dir string) (bytes int64) {
	var text [20]byte
	if _, err := u.file.ReadAt(text[:], 0); err == nil {
		if n, err := fmt.Sscan(string(text[:]), &bytes); n == 1 && err == nil && bytes >= 0 {
			return bytes
		}
	}
	// A chunk of few samples is larger than what the log has of them.
	return 2 * (size(filepath.Join(dir, "wal")) + size(filepath.Join(dir, wlog.WblDirName)))
}

// size is that of the files in a directory.
func size(dir string) (bytes int64) {
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			bytes += info.Size()
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0 // what cannot be read will be said when it is opened
	}
	return bytes
}
