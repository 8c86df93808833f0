package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability/double"
)

// recorded learns what the commands of a recorded call did.
type recorded struct {
	answers map[string]Answer
	all     []*recordedProcess
}

func newRecorded(*double.Recording, string) double.Answerer {
	return &recorded{answers: map[string]Answer{}}
}

// recordedProcess is a command of a recorded call.
type recordedProcess struct {
	at      int
	key     string
	out     [2]bytes.Buffer
	read    uint64
	exit    *uint32
	dropped bool
}

// Learn implements [double.Learner].
func (r *recorded) Learn(o double.Operation) (double.Learner, error) {
	switch {
	case o.Failed == "denied" || o.Failed == "invalid":
		return nil, nil
	case o.Failed != "":
		return nil, fmt.Errorf("it failed: %s", o.Failed)
	case o.Method == "start":
		var argv []string
		for _, a := range o.Args[0].([]abi.Value)[0].([]abi.Value) {
			argv = append(argv, a.(string))
		}
		p := &recordedProcess{at: o.At, key: commandKey(argv)}
		r.all = append(r.all, p)
		return p, nil
	case o.Method == "push" || o.Method == "pull":
		return recordedTransfer{o.Method}, nil
	}
	return nil, double.ErrUnanswered
}

// Learn implements [double.Learner].
func (p *recordedProcess) Learn(o double.Operation) (double.Learner, error) {
	switch {
	case o.Method == "subscribe":
		return nil, nil
	case o.Failed != "":
		return nil, fmt.Errorf("it failed: %s", o.Failed)
	case o.Method == "read":
		part := o.Value.(abi.Variant)
		if part.Case == 0 {
			return nil, nil
		}
		fields := part.Value.([]abi.Value)
		offset, data := fields[0].(uint64), bytesOf(fields[2])
		if offset == p.read { // not again
			_, _ = p.out[fields[1].(abi.Variant).Case&1].Write(data) // to memory
			p.read += uint64(len(data))
		}
		p.dropped = p.dropped || offset > p.read
		return nil, nil
	case o.Method == "take":
		fields := o.Value.([]abi.Value)
		code := fields[0].(uint32)
		p.exit = &code
		if fields[1].(abi.Variant).Case != uint32(Exited) {
			return nil, errors.New("the command did not end by itself")
		}
		return nil, nil
	}
	return nil, double.ErrUnanswered
}

// bytesOf is a list<u8>, in either form of a recording.
func bytesOf(v abi.Value) []byte {
	data, _ := v.([]byte)
	return data
}

// Answers implements [double.Answerer].
func (r *recorded) Answers() (any, error) {
	for _, p := range r.all {
		switch {
		case p.exit == nil:
			return nil, &double.StepError{At: p.at, Err: errors.New("the call did not wait for the end of the command")}
		case p.dropped, *p.exit > 255:
			return nil, &double.StepError{At: p.at, Err: errors.New("a test cannot repeat all of this command's output, or its exit code " + strconv.Itoa(int(*p.exit)))}
		}
		a := Answer{ExitCode: uint8(*p.exit), Stdout: p.out[0].String(), Stderr: p.out[1].String()}
		if before, twice := r.answers[p.key]; twice && (before.ExitCode != a.ExitCode || before.Stdout != a.Stdout || before.Stderr != a.Stderr) {
			return nil, &double.StepError{At: p.at, Err: errors.New("the command did something else the second time, but a test has one answer for it")}
		}
		r.answers[p.key] = a
	}
	if len(r.answers) > double.MaxAnswers {
		return nil, fmt.Errorf("the call ran %d different commands, and a test answers at most %d", len(r.answers), double.MaxAnswers)
	}
	return r.answers, nil
}

// recordedTransfer is a copy of a recorded call.
type recordedTransfer struct{ method string }

// Learn implements [double.Learner].
func (t recordedTransfer) Learn(o double.Operation) (double.Learner, error) {
	if o.Method != "take" || t.method == "push" {
		return nil, nil
	}
	if o.Failed != "" {
		return nil, fmt.Errorf("it failed: %s", o.Failed)
	}
	for _, list := range o.Value.([]abi.Value)[:3] {
		if files, _ := list.([]abi.Value); len(files) > 0 {
			return nil, errors.New("files came back from the sandbox, and the recording does not have them: name them in the answer's files")
		}
	}
	return nil, nil
}
