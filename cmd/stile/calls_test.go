package main

import (
	"bytes"
	"testing"
)

// TestNoJSON shows a recorded output that no host has written.
func TestNoJSON(t *testing.T) {
	if got := jsonOrText(bytes.Repeat([]byte{1}, 2*maxNoJSON)); len(got.(string)) != maxNoJSON {
		t.Errorf("%d bytes are shown", len(got.(string)))
	}
}
