// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// errStopped is what senders hear before the start and after shutdown. Where another component fails to start, the Collector
// shuts down also what has not started yet, and one that has something left to say says it here.
var errStopped = errors.New("tenant_routing is not running")

// tooMuch tells a client to send again after a while: RESOURCE_EXHAUSTED with RetryInfo by gRPC, which the otlp receiver makes
// 429 with Retry-After of over HTTP. That header has whole seconds, so less than one would be none.
func tooMuch(tenant string, why reason, wait time.Duration) error {
	wait = max(time.Second, wait.Round(time.Second)+time.Second)
	s := status.New(codes.ResourceExhausted, fmt.Sprintf("tenant %s is over its limit (%s), send again in %s", tenant, why, wait))
	if with, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(wait)}); err == nil {
		s = with
	}
	return s.Err()
}

// notKnown tells a client that sending again would not help.
func notKnown(strays [reasons]int) error {
	why := unknownName
	if strays[unknownName] == 0 {
		why = invalidName
	}
	s := status.New(codes.InvalidArgument, fmt.Sprintf("the tenant of the data is %s, and on_unknown is reject", why))
	return consumererror.NewPermanent(s.Err())
}

// oversize is what a queue could not take if it were empty: sending it again would not help.
type oversize struct {
	tenant string
	size   int64
	queue  exporterhelper.QueueBatchConfig
}

func (e *oversize) Error() string {
	unit, _ := e.queue.Sizer.MarshalText() // it was read from a text
	return fmt.Sprintf("a request of %d %s is larger than the queue of tenant %s (sending_queue::queue_size: %d): send less at once",
		e.size, unit, e.tenant, e.queue.QueueSize)
}

// GRPCStatus is one that clients do not send again after, by HTTP 400.
func (e *oversize) GRPCStatus() *status.Status { return status.New(codes.InvalidArgument, e.Error()) }

// reasonOf says why a queue, or what comes after, did not take something.
func reasonOf(err error) reason {
	var large *oversize
	if errors.As(err, &large) {
		return tooLarge
	}
	if errors.Is(err, exporterhelper.ErrQueueIsFull) {
		return queueFull
	}
	return notTaken
}
