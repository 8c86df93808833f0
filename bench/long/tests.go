package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
)

// event is a line of go test -json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // seconds
}

// test runs the long tests of packages, one package at a time. It prints their output and returns the minutes of each test, by package.
func test(ctx context.Context, out io.Writer, root string, packages []string) (map[string]map[string]float64, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json", "-p", "1", "-tags", tag, "-count", "1", "-timeout", "120m", "-run", "^TestLong"}, packages...)...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	lines, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	minutes, read := readEvents(lines, out)
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("the long tests did not pass: %w", err)
	}
	return minutes, read
}

// readEvents reads what go test -json writes, and copies the output of packages and tests.
func readEvents(lines io.Reader, out io.Writer) (map[string]map[string]float64, error) {
	minutes := map[string]map[string]float64{}
	for s := bufio.NewReader(lines); ; {
		line, err := s.ReadBytes('\n')
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return minutes, err
		}
		var e event
		if json.Unmarshal(line, &e) != nil {
			continue // of the compiler
		}
		switch {
		case e.Action == "output":
			if _, err := io.WriteString(out, e.Output); err != nil {
				return nil, err
			}
		case e.Action == "pass" && e.Test != "":
			if minutes[e.Package] == nil {
				minutes[e.Package] = map[string]float64{}
			}
			minutes[e.Package][e.Test] = math.Round(e.Elapsed/60*10) / 10
		}
	}
}
