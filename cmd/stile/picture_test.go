package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stilehost/stile/internal/cache/cachetest"
)

// demo is the session that docs/demo.svg shows, with the tool of the README.
var demo = []string{
	`stile inspect remember.ts | grep so:`,
	`stile run remember.ts remember --input '{"text": "crossed a stile"}' --bind notes=workspace:me`,
	`stile run remember.ts remember --input '{"text": "crossed a stile"}' --bind notes=workspace:me,rw`,
	`stile ws cat me/today.md`,
	`stile calls replay 2`,
}

// TestPicture runs the session and compares it with docs/demo.svg. With -update it draws the file.
func TestPicture(t *testing.T) {
	dir, keyDir := cachetest.Dirs(t)
	prepareCache(t, dir, keyDir)
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	s := newShell(t, dir, keyDir)
	for _, part := range fence.FindAllStringSubmatch(string(readme), -1) {
		if part[2] != "" {
			s.write(t, part[2], part[3])
		}
	}
	outputs, codes := s.run(t, demo)
	if got := strings.Join(codes, ""); got != "03000" {
		t.Fatalf("exit codes %s:\n%s", got, strings.Join(outputs, "\n"))
	}
	golden(t, "../../docs/demo.svg", draw(demo, outputs))
}

const (
	lineHeight = 20  // pixels
	charWidth  = 8.5 // pixels, of a monospaced font of 14
	columns    = 104 // characters
	top        = 52
)

// draw draws a terminal in which commands are typed one by one. Viewers without animation show everything.
func draw(commands, outputs []string) []byte {
	var lines bytes.Buffer
	y, at := top, 0.3 // pixels and seconds
	line := func(class, text string) {
		for first := true; first || text != ""; first = false {
			part := text
			if utf8.RuneCountInString(text) > columns {
				cut := strings.LastIndexByte(text[:columns], ' ') + 1
				part, text = text[:cut], "    "+text[cut:]
			} else {
				text = ""
			}
			fmt.Fprintf(&lines, `<text class="%s" x="24" y="%d" style="animation-delay:%.1fs">`, class, y, at)
			_ = xml.EscapeText(&lines, []byte(part)) // writing to a buffer cannot fail
			lines.WriteString("</text>\n")
			y += lineHeight
		}
	}
	for i, command := range commands {
		line("command", "$ "+command)
		at += 0.8
		for out := range strings.Lines(outputs[i]) {
			class := "output"
			if strings.HasPrefix(out, "stile: ") {
				class = "failure"
			}
			line(class, strings.TrimRight(out, "\n"))
		}
		at += 1.2
		y += lineHeight / 2
	}
	width, height := columns*charWidth+48, y+4
	var all bytes.Buffer
	fmt.Fprintf(&all, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %[1]v %[2]d" role="img">
<title>A terminal: a tool is denied, then allowed, and its call is replayed</title>
<style>
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre; fill: #b8c0cc; animation: appear 0.2s backwards }
.command { fill: #ffffff; font-weight: 600 }
.failure { fill: #ff9d8a }
@keyframes appear { from { opacity: 0 } }
@media (prefers-reduced-motion: reduce) { text { animation: none } }
</style>
<rect width="100%%" height="100%%" rx="10" fill="#1c2128"/>
<circle cx="24" cy="22" r="6" fill="#ff5f57"/><circle cx="44" cy="22" r="6" fill="#febc2e"/><circle cx="64" cy="22" r="6" fill="#28c840"/>
`, width, height)
	all.Write(lines.Bytes())
	all.WriteString("</svg>\n")
	return all.Bytes()
}
