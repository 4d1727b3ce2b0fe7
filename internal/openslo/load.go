// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// maxFiles bounds a load, so that a path like / is a problem and not a walk through the whole machine.
const maxFiles = 10_000

// Load reads files, globs and directories, and sources besides them, into one catalog. Of a directory every
// *.yaml and *.yml is read, in its subdirectories too; names that begin with a dot are left out, so that the
// ..data links of a mounted ConfigMap do not count twice. A file that two paths lead to is read once; a path
// that leads to none is a problem. The error is nil or [Problems], as that of [Parse].
func Load(paths []string, sources ...Source) (*Catalog, error) {
	return LoadWith(Options{}, paths, sources...)
}

// LoadWith is [Load] with options.
func LoadWith(opts Options, paths []string, sources ...Source) (*Catalog, error) {
	f := follow(paths)
	sources = sources[:len(sources):len(sources)]
	for _, file := range f.files {
		src, err := readFile(file)
		if err != nil {
			f.problem(file, err.Error())
			continue
		}
		sources = append(sources, src)
	}
	return parse(f.journal, opts, sources)
}

// Files are the files that paths lead to, as LoadWith reads them. What is wrong with a path is for LoadWith to say.
func Files(paths []string) []string { return follow(paths).files }

func follow(paths []string) *finder {
	f := &finder{journal: &journal{}, seen: make(map[string]bool)}
	for _, path := range paths {
		f.find(path)
	}
	return f
}

// finder collects the files that paths lead to.
type finder struct {
	*journal
	files []string
	seen  map[string]bool // real paths of files and directories
	full  bool
}

// problem notes that a file is missing: names that it may define are then not reported as unknown.
func (f *finder) problem(file, message string) {
	f.incomplete = true
	f.add(Problem{File: file, Message: message})
}

// find follows one path of the configuration.
func (f *finder) find(path string) {
	if _, err := os.Lstat(path); err == nil {
		f.take(path)
		return
	}
	if !strings.ContainsAny(path, `*?[`) {
		f.problem(path, "no such file or directory: correct the path")
		return
	}
	if strings.Contains(path, "**") {
		f.problem(path, "** is not known in a glob: name the directory, it is read with its subdirectories")
		return
	}
	matches, err := filepath.Glob(path)
	if err != nil {
		f.problem(path, fmt.Sprintf("is no glob: %v", err))
		return
	}
	found := false
	for _, match := range matches {
		if hidden(match) && !hidden(path) {
			continue
		}
		found = true
		f.take(match)
	}
	if !found {
		f.problem(path, "matches no file: correct the glob")
	}
}

func hidden(path string) bool { return strings.HasPrefix(filepath.Base(path), ".") }

// take visits what the configuration names, which must hold something.
func (f *finder) take(path string) {
	if !f.visit(path) {
		f.problem(path, "holds no *.yaml or *.yml: name another directory, or the file itself")
	}
}

// visit takes a file, or the files of a directory. It is false for a directory without any; what was reported
// or visited before counts as something.
func (f *finder) visit(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	var info os.FileInfo
	if err == nil {
		info, err = os.Stat(real)
	}
	switch {
	case err != nil:
		f.problem(path, reason(err))
		return true
	case f.seen[real]:
		return true
	}
	f.seen[real] = true
	switch {
	case info.IsDir():
		return f.enter(path)
	case !info.Mode().IsRegular():
		f.problem(path, "is no regular file: name a file or a directory")
	case len(f.files) == maxFiles:
		f.problem(path, fmt.Sprintf("is one file more than the %d that are read: name a smaller directory", maxFiles))
		f.full = true
	default:
		f.files = append(f.files, path)
	}
	return true
}

// enter visits the files and subdirectories of a directory.
func (f *finder) enter(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		f.problem(dir, reason(err))
		return true
	}
	found := false
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if f.full || hidden(path) {
			continue
		}
		info, err := os.Stat(path) // follows the links of a ConfigMap
		if err == nil && info.IsDir() || strings.HasSuffix(path, ".yaml") || strings.HasSuffix(path, ".yml") {
			found = f.visit(path) || found
		}
	}
	return found
}

// reason is an error of the file system without the path, which the problem names already.
func reason(err error) string {
	if pathErr := (*os.PathError)(nil); errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	return fmt.Sprintf("cannot be read: %v", err)
}

func readFile(path string) (Source, error) {
	file, err := os.Open(path)
	if err != nil {
		return Source{}, fmt.Errorf("%s", reason(err))
	}
	defer file.Close()
	// One byte more than is allowed, so that a file that is too large is seen to be, and no more is read.
	data, err := io.ReadAll(io.LimitReader(file, maxFileSize+1))
	if err != nil {
		return Source{}, fmt.Errorf("%s", reason(err))
	}
	return Source{Name: path, Data: data}, nil
}
