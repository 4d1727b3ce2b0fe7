// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// endpoints serve a workload, one listener a tenant.
type endpoints struct {
	*workload
	addresses []string
	servers   []*http.Server
	scrapes   atomic.Int64

	mu    sync.Mutex
	fault fault
}

func serve(w *workload) (*endpoints, error) {
	e := &endpoints{workload: w}
	for tenant := range w.tenants {
		address, server, err := listen(func(rw http.ResponseWriter, _ *http.Request) {
			e.mu.Lock()
			f := e.fault
			e.mu.Unlock()
			var b bytes.Buffer
			e.expose(&b, tenant, time.Since(e.began), f)
			rw.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
			_, _ = rw.Write(b.Bytes())
			e.scrapes.Add(1)
		})
		if err != nil {
			e.close()
			return nil, err
		}
		e.addresses, e.servers = append(e.addresses, address), append(e.servers, server)
	}
	return e, nil
}

// breakNow begins the fault and says when.
func (e *endpoints) breakNow(tenant, model int) time.Time {
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fault = fault{tenant: tenant, model: model, from: now.Sub(e.began)}
	return now
}

func (e *endpoints) close() {
	for _, s := range e.servers {
		_ = s.Close() // scrapers come again in vain
	}
}

// listen serves on a free port of this machine.
func listen(handle http.HandlerFunc) (address string, server *http.Server, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server = &http.Server{Handler: handle, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(l) }() // returns when the server is closed
	return l.Addr().String(), server, nil
}
