// SPDX-License-Identifier: Apache-2.0

// Package audit keeps what was done in files that outlive the Collector: lines that are on disk when they have been written, in a
// file that is set aside when it is full; and the little that has to be known after a restart.
package audit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// File is a file of lines. When it would be larger than MaxBytes it becomes path.1, what was path.1 becomes path.2, and so on up to
// Backups, of which the last is removed.
type File struct {
	path     string
	maxBytes int64
	backups  int

	mu   sync.Mutex
	file *os.File
	size int64
	lock *os.File // path.lock, which is held from Open to Close
}

// Open opens a file for appending, and makes it where it is not there. A line that was cut short by a crash is ended. Nobody else can open
// it meanwhile.
func Open(path string, maxBytes int64, backups int) (*File, error) {
	f := &File{path: path, maxBytes: maxBytes, backups: backups}
	var err error
	if f.lock, err = os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, err
	}
	if err = unix.Flock(int(f.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		err = fmt.Errorf("%s: another guard writes it: give each a file of its own", path)
	}
	if err == nil {
		err = f.open()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (f *File) open() error {
	file, err := os.OpenFile(f.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	end := []byte{'\n'}
	if size > 0 {
		if _, err := file.ReadAt(end, size-1); err != nil {
			return errors.Join(err, file.Close())
		}
	}
	f.file, f.size = file, size
	if end[0] != '\n' {
		return f.write(nil)
	}
	return syncFolder(f.path)
}

// Append writes a line. It is on disk when this returns without an error.
func (f *File) Append(line []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil { // an earlier change of files has failed
		if err := f.open(); err != nil {
			return err
		}
	}
	if f.size > 0 && f.size+int64(len(line))+1 > f.maxBytes {
		if err := f.rotate(); err != nil {
			return err
		}
	}
	return f.write(line)
}

func (f *File) write(line []byte) error {
	n, err := f.file.Write(append(append([]byte{}, line...), '\n'))
	f.size += int64(n)
	return errors.Join(err, f.file.Sync())
}

func (f *File) rotate() error {
	err := f.file.Close()
	f.file = nil
	for i := f.backups; i > 0; i-- {
		from := fmt.Sprintf("%s.%d", f.path, i-1)
		if i == 1 {
			from = f.path
		}
		if renaming := os.Rename(from, fmt.Sprintf("%s.%d", f.path, i)); renaming != nil && !errors.Is(renaming, os.ErrNotExist) {
			err = errors.Join(err, renaming)
		}
	}
	if f.backups == 0 {
		err = errors.Join(err, os.Remove(f.path))
	}
	return errors.Join(err, f.open())
}

// Close closes the file.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var err error
	for _, of := range []**os.File{&f.file, &f.lock} {
		if *of != nil {
			err = errors.Join(err, (*of).Close())
			*of = nil
		}
	}
	return err
}

// Replace puts content in place of what a file held, at once and whole, and on disk when it returns.
func Replace(path string, content []byte) error {
	draft, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = draft.Write(content)
	err = errors.Join(err, draft.Sync(), draft.Close())
	if err == nil {
		err = os.Rename(draft.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft.Name()))
	}
	return syncFolder(path)
}

// syncFolder makes that the name of a file is on disk, too.
func syncFolder(path string) error {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
