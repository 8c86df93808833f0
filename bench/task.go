package bench

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Task is the work that contenders do.
type Task string

// The tasks.
const (
	// Compute reads JSON, takes distances along a route, changes a text and writes JSON: tool(input) in tool/compute.js.
	Compute Task = "compute"
	// File reads a file and writes it: tool(input, files) in tool/file.js, where files has read(name) and write(name, text) that
	// return promises. The file `state` is there before the first trial, and holds [NoState].
	File Task = "file"
	// Hello needs no JavaScript: the input comes back as {"hello": input}. tool/hello.c is such a program.
	Hello Task = "hello"
	// Work is one of several computations, repeated: tool(input) in tool/work.js. Only the measurement of that name uses it.
	Work Task = "work"
)

// Tasks are those whose starts are measured.
var Tasks = []Task{Compute, File, Hello}

// StoredID is the id in the code of all trials but those at [NewCode].
const StoredID = "stored"

// NoState is the first content of the file of the task [File].
const NoState = "none"

//go:embed tool
var tools embed.FS

// Source returns the tool of a task, with an id in its code that its answers repeat.
func Source(t Task, id string) string {
	name := map[Task]string{Compute: "compute.js", File: "file.js", Hello: "hello.c", Work: "work.js"}[t]
	text, err := tools.ReadFile("tool/" + name)
	if err != nil {
		panic(err) // a task without a tool
	}
	return strings.ReplaceAll(string(text), "@id@", id)
}

type place struct {
	Lat float64 `json:"lat"`
	Lon float64 `json:"lon"`
}

var route = []place{{52.52, 13.405}, {48.8566, 2.3522}, {51.5074, -0.1278}}

const text = "the quick brown FOX"

// trial makes a trial, with the answer that it must give. was is the content of the file.
func trial(t Task, id string, n int, was string) (Trial, []byte) {
	source := Source(t, id)
	switch t {
	case Compute:
		input, _ := json.Marshal(map[string]any{"n": n, "points": route, "text": text}) // numbers and strings can be marshalled
		legs, total := legs()
		want, _ := json.Marshal(map[string]any{"id": id, "n": n, "legs": legs, "total": total, "text": reverse(text)})
		return Trial{source, input}, want
	case File:
		return Trial{source, fmt.Appendf(nil, `{"n":%d}`, n)}, fmt.Appendf(nil, `{"id":%q,"n":%d,"was":%q}`, id, n, was)
	case Work:
		return Trial{source, fmt.Appendf(nil, `{"work":"fib","n":%d}`, n)}, fmt.Appendf(nil, `{"value":%d}`, 987*n)
	default:
		return Trial{source, fmt.Appendf(nil, `{"n":%d}`, n)}, fmt.Appendf(nil, `{"hello":{"n":%d}}`, n)
	}
}

func legs() (legs []int, total int) {
	for i, to := range route[1:] {
		from := route[i]
		const rad = math.Pi / 180
		dLat, dLon := (to.Lat-from.Lat)*rad, (to.Lon-from.Lon)*rad
		a := math.Pow(math.Sin(dLat/2), 2) + math.Cos(from.Lat*rad)*math.Cos(to.Lat*rad)*math.Pow(math.Sin(dLon/2), 2)
		leg := int(math.Round(2 * 6371 * math.Asin(math.Sqrt(a))))
		legs, total = append(legs, leg), total+leg
	}
	return legs, total
}

func reverse(text string) string {
	words := strings.Split(strings.ToUpper(text), " ")
	slices.Reverse(words)
	return strings.Join(words, " ")
}

// ComputeTrial is the n-th trial of the task [Compute] of a tool with an id, with the answer that it must give.
func ComputeTrial(id string, n int) (Trial, []byte) { return trial(Compute, id, n, "") }

// SameJSON compares two documents, ignoring the order of members.
func SameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	first, _ := json.Marshal(x) // what was unmarshalled can be marshalled
	second, _ := json.Marshal(y)
	return bytes.Equal(first, second)
}

// HoldInput is an input of the task [Compute], for isolates that are kept.
func HoldInput() []byte {
	t, _ := trial(Compute, StoredID, 1, "")
	return t.Input
}
