package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/wit"
)

// maxText is the largest manifest or WIT file, in bytes.
const maxText = 1 << 20

// readManifest reads the manifest of a draft. Names that no extension may have are refused as they are when the draft is added.
func readManifest(file string) (*extension.Manifest, error) {
	text, err := readFile(file, maxText)
	if err != nil {
		return nil, err
	}
	m, err := extension.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if problems := m.CheckNames(func(string) string { return "" }); len(problems) > 0 {
		return nil, nameManifest(&extension.ProblemsError{Stage: extension.StageValidate, Problems: problems}, file)
	}
	return m, nil
}

// witFlag names an embedder's own interfaces.
type witFlag struct {
	WIT []string `name:"wit" sep:"none" placeholder:"PATH" help:"WIT package with interfaces of the program that embeds the host: a file, or a folder with the packages it needs below deps. Can be repeated."`
}

// openSession opens a host that knows the interfaces.
func (w witFlag) openSession(ctx context.Context, s *streams) (*session, error) {
	texts, err := w.read()
	if err != nil {
		return nil, err
	}
	return openSession(ctx, s, sessionOptions{wit: texts})
}

// read returns the texts after validating them, because only this place knows the file of each.
func (w witFlag) read() ([]string, error) {
	var texts, files []string
	for _, file := range w.WIT {
		read, err := readWIT(file)
		if err != nil {
			return nil, err
		}
		for _, text := range read {
			texts, files = append(texts, text), append(files, file)
		}
	}
	if texts == nil {
		return nil, nil
	}
	ours := []string{wit.Capability(), wit.Extension()}
	_, err := abi.ParseCapability(append(ours, texts...)...)
	var wrong *abi.SyntaxError
	switch {
	case errors.As(err, &wrong) && wrong.Line > 0 && wrong.Text >= len(ours):
		return nil, usagef("--wit %s: line %d, column %d: %s", files[wrong.Text-len(ours)], wrong.Line, wrong.Column, wrong.Message)
	case err != nil:
		return nil, usagef("--wit: %w", err)
	}
	return texts, nil
}

// readWIT reads a file, or the interfaces of a folder.
func readWIT(file string) ([]string, error) {
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		known, err := abi.ParseFolder(os.DirFS(file))
		if err != nil {
			return nil, usagef("--wit %s: %w", file, err)
		}
		return known.WIT(), nil
	}
	text, err := readFile(file, maxText)
	return []string{string(text)}, err
}
