package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stilehost/stile/host"
)

// TestNoJSON shows a recorded output that no host has written.
func TestNoJSON(t *testing.T) {
	if got := jsonOrText(bytes.Repeat([]byte{1}, 2*maxNoJSON)); len(got.(string)) != maxNoJSON {
		t.Errorf("%d bytes are shown", len(got.(string)))
	}
}

// The list of calls counts every operation, and a replay says which of them no recording has.
func TestReplayCountsOperations(t *testing.T) {
	outcome := host.Outcome{Kind: "failed"}
	for _, tt := range []struct {
		name string
		replay
		want string
	}{
		{"all recorded", replay{Same: true, Made: 17, Recorded: 17, Answered: 17, Outcome: outcome}, "the same: 17 of 17 recorded operations were made, outcome failed\n"},
		{
			"with WASI",
			replay{Same: true, Made: 19, Recorded: 17, Answered: 17, Outcome: outcome},
			"the same: 17 of 17 recorded operations were made, outcome failed\n2 operations of WASI were not recorded: WASI reaches nothing outside the call\n",
		},
		{"cut", replay{Cut: true, Made: 19, Recorded: 3, Answered: 3, Outcome: outcome}, "not whole: 3 of 3 recorded operations were made, outcome failed\n"},
	} {
		if got := tt.text(); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	show := shownCall{listedCall: listedCall{Operations: 19}, Recorded: make([]host.RecordedOperation, 17)}
	if text := show.text(); !strings.Contains(text, "19 operations, 17 of them recorded; the others are of WASI") {
		t.Errorf("got %q", text)
	}
}
