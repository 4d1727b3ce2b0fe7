// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"os"
	"strings"
	"time"
)

const (
	// maxLogs is far above the 110 pods that a node runs by default.
	maxLogs = 16384
	// logsRest is how long a folder that lacks a container is left alone, so that containers which no kubelet knows cost
	// little.
	logsRest = 5 * time.Second
)

// logs are the links that a kubelet makes for the log of each container, /var/log/containers: their names hold the
// container's id beside what Kubernetes calls it, which tells pods apart that share a device.
type logs struct {
	folder string // empty: there is none
	names  map[string]Names
	next   int64 // when the folder is looked at again
}

// of returns what the container is called. now is in Unix nanoseconds.
func (l *logs) of(containerID string, now int64) (Names, bool) {
	if l.folder == "" {
		return Names{}, false
	}
	if names, ok := l.names[containerID]; ok || now < l.next {
		return names, ok
	}
	l.next = now + int64(logsRest)
	l.read()
	names, ok := l.names[containerID]
	return names, ok
}

func (l *logs) read() {
	l.names = map[string]Names{}
	folder, err := os.Open(l.folder)
	if err != nil {
		return // no kubelet has been here, or not yet
	}
	defer folder.Close()
	files, _ := folder.Readdirnames(maxLogs) // those that were read before an error are as good
	for _, file := range files {
		if id, names, ok := parseLog(file); ok {
			l.names[id] = names
		}
	}
}

// parseLog reads <pod>_<namespace>_<container>-<container id>.log. A name that was cut at 255 bytes has no whole id.
func parseLog(file string) (id string, names Names, ok bool) {
	file, ok = strings.CutSuffix(file, ".log")
	at := strings.LastIndexByte(file, '-')
	if !ok || at < 0 {
		return "", Names{}, false
	}
	id = file[at+1:]
	parts := strings.Split(file[:at], "_") // none of the names may have an underscore
	if len(id) != containerIDLength || !isHex(id) || len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return "", Names{}, false
	}
	return id, Names{Pod: parts[0], Namespace: parts[1], Container: parts[2]}, true
}
