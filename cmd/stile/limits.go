package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
)

// limit is a limit that --limit sets.
type limit struct {
	name string
	set  func(l *host.Limits, value string) error
	get  func(l host.Limits) any
}

// callLimits are all of them.
var callLimits = []limit{
	{"memory", func(l *host.Limits, value string) (err error) {
		if l.Memory, err = printable.ParseSize(value); l.Memory > host.MaxMemory {
			err = fmt.Errorf("a guest can address %dGiB", host.MaxMemory>>30)
		}
		return err
	}, func(l host.Limits) any { return l.Memory }},
	newLimit("cpu", func(l *host.Limits) *time.Duration { return &l.CPU }, parseDuration),
	newLimit("wall", func(l *host.Limits) *time.Duration { return &l.Wall }, parseDuration),
	newLimit("input", func(l *host.Limits) *int { return &l.Input }, asInt(printable.ParseSize)),
	newLimit("output", func(l *host.Limits) *int { return &l.Output }, asInt(printable.ParseSize)),
	newLimit("handles", func(l *host.Limits) *int { return &l.Handles }, asInt(parseCount)),
	newLimit("pending", func(l *host.Limits) *int { return &l.Pending }, asInt(parseCount)),
	newLimit("nesting", func(l *host.Limits) *int { return &l.Nesting }, asInt(parseCount)),
}

func newLimit[T any](name string, field func(*host.Limits) *T, parse func(string) (T, error)) limit {
	return limit{
		name,
		func(l *host.Limits, value string) (err error) { *field(l), err = parse(value); return err },
		func(l host.Limits) any { return *field(&l) },
	}
}

func limitNames() []string {
	names := make([]string, len(callLimits))
	for i, l := range callLimits {
		names[i] = l.name
	}
	return names
}

// parseLimits reads NAME=VALUE pairs.
func parseLimits(pairs []string) (host.Limits, error) {
	var all host.Limits
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		err := fmt.Errorf("there is no limit %q; there are %s", name, strings.Join(limitNames(), ", "))
		if name == "stack" {
			err = errors.New("the stack has one size for all calls: functions nest about 5,000 deep, async ones 2,700. The limits cpu and memory bound a recursion, too")
		}
		if i := slices.Index(limitNames(), name); i >= 0 {
			err = callLimits[i].set(&all, value)
		}
		if err != nil {
			return all, usagef("--limit %s: %w", pair, err)
		}
	}
	return all, nil
}

// limitsOf returns the value of each limit as text.
func limitsOf(l host.Limits) map[string]string {
	all := map[string]string{}
	for _, limit := range callLimits {
		all[limit.name] = fmt.Sprint(limit.get(l))
	}
	return all
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

// asInt makes parse refuse what an int may not hold.
func asInt(parse func(string) (int64, error)) func(string) (int, error) {
	return func(text string) (int, error) {
		n, err := parse(text)
		if err == nil && n > math.MaxInt32 {
			err = fmt.Errorf("%q is more than %d", text, math.MaxInt32)
		}
		return int(n), err
	}
}
