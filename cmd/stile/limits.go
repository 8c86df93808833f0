package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
)

// wasmMemory is how many bytes a guest can address.
const wasmMemory = 4 << 30

// limitNames are the limits that --limit sets.
var limitNames = []string{"memory", "cpu", "wall", "input", "output", "handles", "pending", "nesting"}

// parseLimits reads NAME=VALUE pairs.
func parseLimits(pairs []string) (host.Limits, error) {
	var l host.Limits
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		var err error
		switch name {
		case "memory":
			if l.Memory, err = printable.ParseSize(value); l.Memory > wasmMemory {
				err = errors.New("a guest can address 4GiB")
			}
		case "cpu":
			l.CPU, err = parseDuration(value)
		case "wall":
			l.Wall, err = parseDuration(value)
		case "input":
			l.Input, err = parseInt(value, printable.ParseSize)
		case "output":
			l.Output, err = parseInt(value, printable.ParseSize)
		case "handles":
			l.Handles, err = parseInt(value, parseCount)
		case "pending":
			l.Pending, err = parseInt(value, parseCount)
		case "nesting":
			l.Nesting, err = parseInt(value, parseCount)
		default:
			err = fmt.Errorf("there is no limit %q; there are %s", name, strings.Join(limitNames, ", "))
		}
		if err != nil {
			return l, usagef("--limit %s: %w", pair, err)
		}
	}
	return l, nil
}

func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q is not a duration; write one like 200ms or 5s", text)
	}
	return d, nil
}

func parseCount(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("%q is not a number; write one like 100", text)
	}
	return n, nil
}

func parseInt(text string, parse func(string) (int64, error)) (int, error) {
	n, err := parse(text)
	if err == nil && n > math.MaxInt32 {
		err = fmt.Errorf("%q is more than %d", text, math.MaxInt32)
	}
	return int(n), err
}
