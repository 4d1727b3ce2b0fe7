// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed web
var web embed.FS

// types are those of the page's files, so that none depends on what the machine knows.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	"":      "text/plain; charset=utf-8", // LICENSE
}

type file struct {
	body              []byte
	contentType, etag string
}

// files are the page, by path. A browser asks anew each time and is told when nothing has changed.
type files map[string]file

func newFiles() (files, error) {
	all := files{}
	err := fs.WalkDir(web, "web", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := web.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		all[strings.TrimPrefix(name, "web")] = file{body, types[path.Ext(name)], `"` + hex.EncodeToString(sum[:8]) + `"`}
		return nil
	})
	all["/"] = all["/index.html"]
	return all, err
}

func (f files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	found, ok := f[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", found.contentType)
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", found.etag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(found.body))
}

// pageConfig answers what the page has to know of the configuration; no secret is among it.
func pageConfig(cfg *Config) http.Handler {
	body, err := json.Marshal(map[string]string{"query_url": cfg.QueryURL, "trace_url": cfg.TraceURL})
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(body) // nobody is left to tell
	})
}
