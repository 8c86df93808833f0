package host_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host"
)

// unclosable is a box whose parts fail to close, with an error that only the host may see.
type unclosable struct{ box }

func (*unclosable) Split(context.Context) *unclosable { return &unclosable{} }
func (*unclosable) Close() error                      { return errors.New("close /home/s3cret") }

// TestFaultsOfCalleesStayOfTheHost has tools end in all ways while a value also fails to close.
func TestFaultsOfCalleesStayOfTheHost(t *testing.T) {
	h := newHost(t, host.Options{})
	for name, g := range map[string]guest{
		"a failure": {call: `(drop (call $error (i32.const 4))) (i32.const 128)`},
		"a trap":    {call: `unreachable`},
		"an input":  {call: `(drop (call $error (i32.const 1))) (i32.const 128)`},
		"a limit":   {call: `(loop $l (drop (call $never (local.get $box))) (br $l)) unreachable`},
	} {
		t.Run(name, func(t *testing.T) {
			g.uses, g.call = "open split never", `(drop (call $split (local.get $box))) `+g.call
			callee := host.Callee{Component: g.load(t, h), Tool: "t", Env: host.Env{"box": &unclosable{}}}
			ended := make(chan error)
			callee.Start(t.Context(), "inner", nil, nil, func(_ []byte, err error) { ended <- err })
			err := <-ended
			shown, ok := errors.AsType[*abi.Error](err)
			if !ok || strings.Contains(shown.Error(), "s3cret") || !strings.HasPrefix(shown.Detail, "inner: ") {
				t.Errorf("a guest is told %v", shown)
			}
			if !strings.Contains(errors.Join(err.(interface{ Unwrap() []error }).Unwrap()...).Error(), "s3cret") {
				t.Errorf("the fault is lost: %v", err)
			}
		})
	}
}
