package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/stilehost/stile/bench/internal/measure"
)

// Line is a line of lines.jsonl, with one field set. A run writes each as soon as it is known.
type Line struct {
	Machine    *measure.Machine `json:"machine,omitempty"` // the first line, and the last
	Contender  *Participant     `json:"contender,omitempty"`
	Start      *StartRound      `json:"start,omitempty"`
	Memory     *MemoryPoint     `json:"memory,omitempty"`
	Throughput *ThroughputPoint `json:"throughput,omitempty"`
	Cost       *CostPoint       `json:"cost,omitempty"`
	Work       *WorkRound       `json:"work,omitempty"`
	Parts      *PartsRound      `json:"parts,omitempty"`
	Idle       *IdlePoint       `json:"idle,omitempty"`
	Host       *HostRound       `json:"host,omitempty"`
}

// Participant is a contender and whether it takes part.
type Participant struct {
	Name     string `json:"name"`
	Title    string `json:"title"`
	Boundary string `json:"boundary"`
	Limits   string `json:"limits"`
	Level    Level  `json:"level"`
	Task     Task   `json:"task"`
	// Reason is why it does not take part. Install is what would help.
	Reason  string `json:"reason,omitempty"`
	Install string `json:"install,omitempty"`
	// PrepareMS is how long preparing took.
	PrepareMS float64 `json:"prepare_ms,omitempty"`
}

// StartRound is a series of trials of one contender.
type StartRound struct {
	Contender string `json:"contender"`
	Task      Task   `json:"task"`
	Level     Level  `json:"level"`
	Round     int    `json:"round"`
	// ResultUS is the time from handing over the task to the complete answer. EndUS is the time until the isolate is gone.
	ResultUS []float64 `json:"result_us"`
	EndUS    []float64 `json:"end_us"`
	// CPUUS is the processor time of the whole machine for each trial.
	CPUUS float64 `json:"cpu_us"`
}

// MemoryPoint is the memory that a number of idle isolates takes.
type MemoryPoint struct {
	Contender string `json:"contender"`
	Live      int    `json:"live"`
	// Processes is how many processes were counted.
	Processes int `json:"processes"`
	// PrivateKiB and ProportionalKiB are sums over the processes: memory that each has alone, and memory with its share of what it
	// shares. DaemonKiB is the proportional size of daemons.
	PrivateKiB      float64 `json:"private_kib"`
	ProportionalKiB float64 `json:"proportional_kib"`
	DaemonKiB       float64 `json:"daemon_kib,omitempty"`
	// AvailableKiB is how much less memory the machine had available than before. It includes the kernel's share, and noise.
	AvailableKiB float64 `json:"available_kib"`
	// StartMS is how long it took until all were idle. EndMS is how long it took until all were gone.
	StartMS float64 `json:"start_ms"`
	EndMS   float64 `json:"end_ms"`
}

// ThroughputPoint counts trials of one contender by callers at once.
type ThroughputPoint struct {
	Contender string `json:"contender"`
	Callers   int    `json:"callers,omitempty"` // each starts when its last trial has ended
	// Load is the share of the highest rate at which trials start, whether others have ended or not. It is zero with Callers.
	Load      float64 `json:"load,omitempty"`
	PerSecond float64 `json:"per_second"`
	// latencies, counted from when a trial was due
	P50US float64 `json:"p50_us"`
	P95US float64 `json:"p95_us"`
	P99US float64 `json:"p99_us"`
}

// CostPoint is how long a cold call of this host takes as something grows.
type CostPoint struct {
	What   string           `json:"what"`
	X      float64          `json:"x"`
	Unit   string           `json:"unit"` // of X
	CallUS measure.Estimate `json:"call_us"`
	P95US  float64          `json:"p95_us"`
	// Faults is the number of page faults in a call, by the process's own count.
	Faults float64 `json:"faults"`
}

// WorkRound is a computation inside an isolate.
type WorkRound struct {
	Contender string  `json:"contender"`
	Work      string  `json:"work"`
	Round     int     `json:"round"`
	MS        float64 `json:"ms"`
}

// PartsRound is where the time of a cold call of this host goes, in microseconds per call.
type PartsRound struct {
	Round int                `json:"round"`
	US    map[string]float64 `json:"us"`
	// Faults is the pages that the kernel mapped for a call. SystemUS is its processor time for one. Both are of the whole process.
	Faults   float64 `json:"faults"`
	SystemUS float64 `json:"system_us"`
}

// IdlePoint is a measurement of many agents. Few of them are active at once.
type IdlePoint struct {
	Contender string  `json:"contender"`
	Agents    int     `json:"agents"`
	Active    float64 `json:"active"` // share of them that is active at any time
	// MemoryMiB and CPU, in processors, are for all agents. Measured is how many agents they were measured with; the rest is
	// extrapolated.
	MemoryMiB float64 `json:"memory_mib"`
	CPU       float64 `json:"cpu"`
	Measured  int     `json:"measured"`
}

// HostFigure is what is measured of a host of the conformance suite's protocol.
type HostFigure string

// The figures of hosts: times in microseconds, rates in calls a second and memory in KiB.
const (
	HostStart      HostFigure = "start"       // from the start of the process to its hello
	HostFirst      HostFigure = "first"       // the first call of a component that no process has seen
	HostMessage    HostFigure = "message"     // a hello and its answer: what the protocol takes
	HostCall       HostFigure = "call"        // a call in a fresh instance
	HostFetch      HostFigure = "fetch"       // a call that makes a request to a server on this machine
	HostRate1      HostFigure = "rate-1"      // calls a second by one caller
	HostRate4      HostFigure = "rate-4"      // by four
	HostRate16     HostFigure = "rate-16"     // by sixteen
	HostPrivateNew HostFigure = "private-new" // private memory of the processes after hello
	HostPrivate    HostFigure = "private"     // after the calls of a round
	HostWaiting    HostFigure = "waiting"     // private memory of one more call that waits
)

// HostRound is a series of trials of one host of the protocol.
type HostRound struct {
	Host   string     `json:"host"`
	Own    bool       `json:"own,omitempty"` // it is this one, with which others are compared
	What   HostFigure `json:"what"`
	Round  int        `json:"round"`
	Values []float64  `json:"values"`
}

const linesFile = "lines.jsonl"

// LineError is a line of lines.jsonl that cannot be read.
type LineError struct {
	File string
	Line int
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("%s, line %d: %v", e.File, e.Line, e.Err) }

func (e *LineError) Unwrap() error { return e.Err }

// ReadLines reads what a run wrote into dir. It ignores an incomplete last line, which a run that was killed leaves. Any other
// unreadable line is a *LineError.
func ReadLines(dir string) (lines []Line, err error) {
	f, err := os.Open(filepath.Join(dir, linesFile))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	for n := 1; ; n++ {
		text, end := r.ReadBytes('\n')
		if end != nil && !errors.Is(end, io.EOF) {
			return nil, end
		}
		if len(bytes.TrimSpace(text)) > 0 {
			var l Line
			switch err := json.Unmarshal(text, &l); {
			case err == nil:
				lines = append(lines, l)
			case end == nil:
				return nil, &LineError{f.Name(), n, err}
			}
		}
		if end != nil {
			return lines, nil
		}
	}
}
