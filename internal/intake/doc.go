// SPDX-License-Identifier: Apache-2.0

// Package intake takes telemetry in for the SLOs of a catalog: metrics, spans and log records come in, and what each SLO and
// group has to know of them goes out to a Sink, in plain values, base units and event time. It is the one way in which
// components that judge promises hear of what happened.
//
// It finds what serves which SLO, makes what was added of cumulative series, and withholds what says nothing: resets, what
// comes late or twice, and dirt. Each item is accepted or refused for one reason (Counts). Input series are bounded and
// expire; how far each had come is for a checkpoint. What is steady allocates nothing.
//
// An Intake is not safe for concurrent use.
package intake
