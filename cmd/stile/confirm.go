package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// person is a terminal with somebody at it.
type person struct {
	in  *os.File
	out io.Writer
}

// person returns the terminal at which somebody can be asked. Input must come from a terminal, and the question must reach one.
func (s *streams) person() (person, bool) {
	in, ok := terminal(s.in)
	if !ok {
		return person{}, false
	}
	if s.interactive() {
		return person{in, s.err}, true
	}
	// It stays open until the process ends.
	out, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0)
	return person{in, out}, err == nil
}

// confirm asks a question. Only y and yes mean yes. What was typed before the question does not answer it: nobody had read it.
func (p person) confirm(ctx context.Context, question string) (bool, error) {
	if err := discardTyped(p.in); err != nil {
		return false, fmt.Errorf("discard what was typed before: %w", err)
	}
	if _, err := fmt.Fprintf(p.out, "%s [y/N] ", question); err != nil {
		return false, err
	}
	line, err := interruptible(ctx, func() ([]byte, error) {
		line, err := bufio.NewReader(io.LimitReader(p.in, maxTyped)).ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return line, err
	})
	if err != nil {
		return false, err
	}
	answer := strings.ToLower(strings.TrimSpace(string(line)))
	return answer == "y" || answer == "yes", nil
}
