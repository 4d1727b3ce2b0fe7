// SPDX-License-Identifier: Apache-2.0

package gpuaction

// EventName is that of the log events.
const EventName = "gpu_guard.action"

// Outcome is what came of an action.
type Outcome string

// The outcomes.
const (
	// WouldTerm is that of a dry run: the process would have been asked to end.
	WouldTerm Outcome = "would_term"
	// Termed is told when the process is asked to end. What comes of that follows, with the same ID.
	Termed Outcome = "termed"
	// Exited has ended within the grace.
	Exited Outcome = "exited"
	// Killed had to be killed, and has ended.
	Killed Outcome = "killed"
	// Stuck was killed and has not ended, as one that hangs in the driver.
	Stuck Outcome = "stuck"
	// Stopped was asked to end, and the guard was told to stop before it killed.
	Stopped Outcome = "stopped"
	// Interrupted: the Collector was gone before it could say what came of it.
	Interrupted Outcome = "interrupted"
	// Refused: nobody was touched, or not any further. Reason says why.
	Refused Outcome = "refused"
)

// The triggers.
const (
	Threshold = "threshold"
	Leak      = "leak"
)

// Action is one line of the audit, and one event. What is zero is not known, or does not apply.
type Action struct {
	// ID is the same for all that is told of one action.
	ID string
	// At is when it was so, in Unix nanoseconds.
	At int64

	Outcome Outcome
	Reason  string // of Refused
	DryRun  bool
	Method  string
	// Rule made the process a victim, or protects it.
	Rule string

	// Trigger is Threshold or Leak.
	Trigger   string
	Threshold float64
	AboveFor  float64 // seconds
	LeakID    string
	Cause     string

	Device      string // hw.id
	Used, Total uint64 // bytes of the device
	// Candidates is among how many processes a victim was looked for.
	Candidates int

	Process Process
	Held    uint64 // bytes of the process on the device
	Growth  uint64 // bytes, lately

	// Seconds: from the allocation or the reading until it was known; from when there was something to decide until it was
	// decided; from the first signal until now.
	Detection, Decision, Duration float64
}

// Process is the one that it is about. PID 0: none.
type Process struct {
	PID int
	// Start is in clock ticks since boot, Started in Unix nanoseconds.
	Start   uint64
	Started int64
	UID     int // below 0: not known

	Executable, Path, Cgroup                       string
	ContainerID, PodUID, Namespace, Pod, Container string
}
