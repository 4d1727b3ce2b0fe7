// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// fileID is a file in whatever mount namespace and by whatever path.
type fileID struct {
	major, minor uint32
	inode        uint64
}

// mapping is a piece of a file that a process may execute.
type mapping struct {
	file fileID
	// span is START-END as in /proc/PID/maps and as the name of a file in /proc/PID/map_files.
	span []byte
	// path is how the process's mount namespace names the file, without " (deleted)".
	path []byte
}

// parseMaps calls fn with each executable mapping of a file. What it is given is valid until it returns.
func parseMaps(text []byte, fn func(mapping)) {
	for len(text) > 0 {
		line := text
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			line, text = text[:i], text[i+1:]
		} else {
			text = nil
		}
		// 7f1c8000-7f1c9000 r-xp 00001000 fd:01 1234      /usr/lib/libcuda.so.1
		span, rest := field(line)
		flags, rest := field(rest)
		if len(flags) < 3 || flags[2] != 'x' {
			continue
		}
		_, rest = field(rest)
		device, rest := field(rest)
		inode, path := field(rest)
		path = bytes.TrimSuffix(path, []byte(" (deleted)"))
		if len(path) == 0 || path[0] != '/' {
			continue
		}
		major, minor, _ := bytes.Cut(device, []byte(":"))
		m := mapping{span: span, path: path}
		m.file.major, m.file.minor = uint32(number(major, 16)), uint32(number(minor, 16))
		if m.file.inode = number(inode, 10); m.file.inode != 0 {
			fn(m)
		}
	}
}

// field is the first word of a line, and what follows it without the spaces before.
func field(line []byte) (word, rest []byte) {
	i := bytes.IndexByte(line, ' ')
	if i < 0 {
		return line, nil
	}
	return line[:i], bytes.TrimLeft(line[i:], " ")
}

func number(digits []byte, base uint64) (n uint64) {
	for _, d := range digits {
		switch {
		case '0' <= d && d <= '9':
			n = n*base + uint64(d-'0')
		case 'a' <= d && d <= 'f' && base == 16:
			n = n*base + uint64(d-'a'+10)
		default:
			return n
		}
	}
	return n
}

// procReader reads files of processes, without leaving garbage behind.
type procReader struct {
	root   string
	path   []byte
	buffer []byte
}

// read is what is in ROOT/PID/NAME, valid until the next one.
func (r *procReader) read(pid int, name string) ([]byte, error) {
	r.path = append(r.path[:0], r.root...)
	r.path = append(r.path, '/')
	r.path = strconv.AppendInt(r.path, int64(pid), 10)
	r.path = append(r.path, '/')
	r.path = append(r.path, name...)
	fd, err := unix.Open(string(r.path), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	if r.buffer == nil {
		r.buffer = make([]byte, 1<<16)
	}
	have := 0
	for {
		n, err := unix.Read(fd, r.buffer[have:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return r.buffer[:have], nil
		}
		if have += n; have == len(r.buffer) {
			r.buffer = append(r.buffer, make([]byte, len(r.buffer))...)
		}
	}
}

// openMapped opens what a process has mapped: the very file where that is allowed, else the one at its path that has the inode.
func openMapped(root string, pid int, file fileID, span, path string) (*os.File, error) {
	process := root + "/" + strconv.Itoa(pid)
	if f, err := openRegular(process+"/map_files/"+span, file.inode); err == nil {
		return f, nil // allowed with CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN
	}
	f, err := openRegular(process+"/root"+path, file.inode)
	if err != nil {
		// Of a process in a chroot, the path is as this process sees it.
		if f, err := openRegular(path, file.inode); err == nil {
			return f, nil
		}
	}
	return f, err
}

var errOther = errors.New("another file is there now")

// openRegular opens a regular file with this inode, and nothing else: opening a device or a pipe that somebody put there
// might do or wait for something. The device is not compared: file systems such as btrfs have several.
func openRegular(name string, inode uint64) (*os.File, error) {
	fd, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return nil, &os.PathError{Op: "stat", Path: name, Err: err}
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG || stat.Ino != inode {
		return nil, &os.PathError{Op: "open", Path: name, Err: errOther}
	}
	return os.Open(selfFD(uintptr(fd)))
}

// selfFD is the path of a file that is open here, whatever has become of its name.
func selfFD(fd uintptr) string { return "/proc/self/fd/" + strconv.FormatUint(uint64(fd), 10) }
