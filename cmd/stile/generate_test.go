package main

import (
	"strings"
	"testing"
)

// TestModelText has a model that writes lines which look like ours.
func TestModelText(t *testing.T) {
	var b strings.Builder
	text := modelText{out: &b}
	for _, piece := range []string{"stile: signed by", " tom\nstile: approved\r\n", "\x1b[2J{\"error\": 1}"} {
		text.add(1, piece)
	}
	text.end()
	b.WriteString("Building ...\n")
	text.end()
	text.add(2, "stile: mended")
	text.add(3, "stile: again\n")
	text.end()
	want := "    stile: signed by tom\n    stile: approved\n    \\x1b[2J{\"error\": 1}\nBuilding ...\n    stile: mended\n    stile: again\n    \n"
	if got := b.String(); got != want {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
}
