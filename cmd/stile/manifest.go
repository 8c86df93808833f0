package main

import (
	"context"
	"fmt"

	"github.com/stilehost/stile/extension"
)

// maxText is the most bytes of a manifest or a WIT file that are read.
const maxText = 1 << 20

func readManifest(file string) (*extension.Manifest, error) {
	text, err := readFile(file, maxText)
	if err != nil {
		return nil, err
	}
	m, err := extension.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return m, nil
}

// witFlag names an embedder's own interfaces.
type witFlag struct {
	WIT []string `name:"wit" sep:"none" placeholder:"FILE" help:"WIT package with interfaces of the program that embeds the host. Can be repeated."`
}

// openSession opens a host that knows the interfaces.
func (w witFlag) openSession(ctx context.Context, s *streams) (*session, error) {
	wit, err := w.read()
	if err != nil {
		return nil, err
	}
	return openSession(ctx, s, sessionOptions{wit: wit})
}

func (w witFlag) read() ([]string, error) {
	var texts []string
	for _, file := range w.WIT {
		text, err := readFile(file, maxText)
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(text))
	}
	return texts, nil
}
