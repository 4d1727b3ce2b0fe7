// SPDX-License-Identifier: Apache-2.0

//go:build backends

package backends

import (
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// passing is how many bytes are something: more than the first words of a connection.
const passing = 32 << 10

// valve stands before a server that must not end, since all it has is in memory. While it is shut, connections to it are refused,
// and those that were there are cut: to who sends, the server is gone.
type valve struct {
	t  testing.TB
	at string // host:port
	to string // host:port

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]struct{}
	passed   int           // bytes since it was opened
	passing  chan struct{} // closed when that is something
	copying  sync.WaitGroup
}

func newValve(t testing.TB, to string) *valve {
	t.Helper()
	v := &valve{t: t, at: "127.0.0.1:0", to: to, conns: map[net.Conn]struct{}{}}
	v.open()
	v.at = v.listener.Addr().String() // the same from now on
	t.Cleanup(v.shut)
	return v
}

// open lets pass what comes, and returns a channel that is closed when something does.
func (v *valve) open() (passing <-chan struct{}) {
	v.t.Helper()
	listener, err := net.Listen("tcp", v.at)
	require.NoError(v.t, err)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.listener, v.passed, v.passing = listener, 0, make(chan struct{})
	v.copying.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return // it was shut
			}
			to, err := net.Dial("tcp", v.to)
			if err != nil {
				_ = from.Close()
				continue
			}
			v.mu.Lock()
			v.conns[from], v.conns[to] = struct{}{}, struct{}{}
			if v.listener != listener { // it was shut meanwhile
				_, _ = from.Close(), to.Close()
			}
			v.mu.Unlock()
			v.copying.Go(func() { v.copy(to, from) })
			v.copying.Go(func() { v.copy(from, to) })
		}
	})
	return v.passing
}

// copy copies until either side ends, and then ends both.
func (v *valve) copy(to, from net.Conn) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			v.note(n)
			if _, err := to.Write(buffer[:n]); err != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, c := range []net.Conn{to, from} {
		_ = c.Close() // the other direction may have done it
		delete(v.conns, c)
	}
}

func (v *valve) note(n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if before := v.passed; before < passing && before+n >= passing {
		close(v.passing)
	}
	v.passed += n
}

// shut refuses what comes, and cuts what is there.
func (v *valve) shut() {
	v.mu.Lock()
	if v.listener != nil {
		_ = v.listener.Close()
		v.listener = nil
	}
	for c := range v.conns {
		_ = c.Close()
	}
	v.mu.Unlock()
	v.copying.Wait()
}
