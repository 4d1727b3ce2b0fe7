// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"time"

	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/judge"
	"github.com/otelcol-llm/otelcol-llm/internal/emit"
)

// maxPendingEvents bounds the events that wait for their consumer.
const maxPendingEvents = 10_000

// outbox holds events until they are taken. The pause belongs to one goroutine at a time: the one that publishes events, then
// Shutdown. The engine's mutex guards pending, since a checkpoint keeps what is in it.
type outbox struct {
	emit.Pause
	pending []judge.Event
	refused time.Time // since when the consumer says that it will never take them; zero while it does not
}

// believed is how long a consumer must say that it will never take events before they are let go: a token that has expired,
// or a backend that is being set up, says so, too.
const believed = time.Hour
