// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"regexp"
	"strings"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// answer is what a destination's answer means for what it did not take.
type answer uint8

const (
	asItSays answer = iota // what the exporter makes of it: OTLP's rules
	never                  // it is not taken however often it is sent, though OTLP would try again
	notNow                 // it is about who sends, or how much, and not about what: it is there until the destination takes it
	ownFault               // the destination's own, such as HTTP 500: OTLP calls it final, and it may be for a while
)

// larger is what servers of gRPC say of a message that is larger than they take, with the code of a quota that is used up: in Go,
// C++ and Python; Java; .NET; Rust.
var larger = regexp.MustCompile(`(?i)larger than max|exceeds (the )?maximum (configured message )?size|too[ _]large`)

// meaning reads what a destination has answered.
func meaning(err error) answer {
	s, ok := status.FromError(err)
	if !ok {
		return asItSays
	}
	switch s.Code() {
	case codes.ResourceExhausted, codes.OutOfRange:
		switch {
		case larger.MatchString(s.Message()):
			return never
		case consumererror.IsPermanent(err): // without RetryInfo, as Tempo answers over its limits; HTTP 429 is tried again
			return notNow
		}
	case codes.Unauthenticated, codes.PermissionDenied: // HTTP 401 and 403: a token has expired, or is not known yet
		return notNow
	case codes.Internal, codes.Unknown: // backends say so when they are overloaded or restart
		// otlp_http has one code for all that gRPC has no name for, and the number in the text only.
		if consumererror.IsPermanent(err) && !strings.Contains(s.Message(), "HTTP Status Code 4") {
			return ownFault
		}
	}
	return asItSays
}
