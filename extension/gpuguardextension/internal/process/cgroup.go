// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxMembers bounds the processes of a control group that is killed: more are not looked at one by one within the time that
// a decision may take.
const maxMembers = 4096

// Group is the folder of the control group of a process, in version 2.
func (t *Table) Group(pid int) (string, error) {
	content, err := read(t.folder(pid), "cgroup")
	if err != nil {
		return "", err
	}
	path := unifiedPath(content)
	switch {
	case path == "":
		return "", errors.New("the process is in no control group of version 2")
	case path == "/":
		return "", errors.New("the process is in the root of all control groups")
	case path != filepath.Clean(path) || outside(path):
		return "", fmt.Errorf("control group %s is outside of what the Collector sees", path)
	}
	folder := filepath.Join(t.opts.CgroupRoot, path)
	if _, err := os.Stat(filepath.Join(folder, "cgroup.kill")); err != nil {
		return "", fmt.Errorf("cgroup_root: %w", err)
	}
	return folder, nil
}

// CheckCgroups says why no control group below a folder could be killed.
func CheckCgroups(root string) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(root, &fs); err != nil {
		return fmt.Errorf("%s: %w", root, err)
	}
	if uint32(fs.Type) != unix.CGROUP2_SUPER_MAGIC {
		return fmt.Errorf("%s has no control groups of version 2, which method: cgroup_kill takes: say where they are mounted, or write method: kill", root)
	}
	groups, err := filepath.Glob(filepath.Join(root, "*", "cgroup.procs"))
	if err != nil || len(groups) == 0 {
		return err
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(groups[0]), "cgroup.kill")); err != nil {
		return fmt.Errorf("method: cgroup_kill takes Linux 5.14: write method: kill: %w", err)
	}
	return nil
}

// Members are the processes of a control group and of all below it.
func (t *Table) Members(folder string) (all []int, err error) {
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		if err != nil {
			return err
		}
		for _, field := range strings.Fields(string(content)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				return err
			}
			all = append(all, pid) // 0 is one that is not to be seen from here
		}
		if len(all) > maxMembers {
			return fmt.Errorf("there are more than %d processes in %s", maxMembers, folder)
		}
		return nil
	})
	return all, err
}

// KillGroup ends all processes of a control group and of those below it.
func (t *Table) KillGroup(folder string) error {
	return os.WriteFile(filepath.Join(folder, "cgroup.kill"), []byte("1"), 0o600)
}
