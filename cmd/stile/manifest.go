package main

import (
	"context"
	"errors"
	"os"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/wit"
)

// maxText is the largest manifest or WIT file, in bytes.
const maxText = 1 << 20

// readManifest reads the manifest of a draft. Its problems are those that the draft has when it is added.
func readManifest(file string) (*extension.Manifest, error) {
	m, _, err := readManifestText(file)
	return m, err
}

// readManifestText is readManifest with the text.
func readManifestText(file string) (*extension.Manifest, []byte, error) {
	text, err := readFile(file, maxText)
	if err != nil {
		return nil, nil, err
	}
	found := &extension.ProblemsError{Stage: extension.StageValidate}
	m, err := extension.Parse(text)
	if wrong, ok := errors.AsType[*extension.ManifestError](err); ok {
		found.Problems, found.Cause = wrong.Problems(), wrong
	} else {
		found.Problems = m.CheckNames(text, func(string) string { return "" })
	}
	if len(found.Problems) > 0 {
		return nil, nil, nameManifest(found, file)
	}
	return m, text, nil
}

// checkTools compares the tools of a manifest with those of the code.
func checkTools(m *extension.Manifest, file string, exported []string) error {
	err := m.CheckTools(exported)
	if err == nil {
		return nil
	}
	text, _ := readFile(file, maxText) // without it, the problem has no place
	line, column := extension.PlacesIn(text).Of("tools")
	return &extension.ProblemsError{Stage: extension.StageImage, Problems: []extension.Problem{
		{File: file, Line: line, Column: column, Text: err.Error(), Fix: "the same names in both"},
	}}
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
