package main

import (
	"fmt"
	"runtime/debug"
)

type versionCommand struct {
	asJSON
}

// Help implements kong.HelpProvider.
func (*versionCommand) Help() string {
	return `Examples:

    stile version
    stile version --json`
}

// unreleased is the version that a build without a version of its own leads to. CHANGELOG.md has it.
const unreleased = "0.1.0"

// versions says what the program was built from.
type versions struct {
	Stile    string `json:"stile"`
	Go       string `json:"go"`
	Wasmtime string `json:"wasmtime"`
}

func readVersions() versions {
	v := versions{Stile: "unknown", Go: "unknown", Wasmtime: "unknown"}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Stile, v.Go = versionOf(build), build.GoVersion
	for _, m := range build.Deps {
		if m.Path == "github.com/bytecodealliance/wasmtime-go/v44" {
			v.Wasmtime = m.Version
		}
	}
	return v
}

// Run implements the command.
func (c *versionCommand) Run(s *streams) error {
	v := readVersions()
	if c.JSON {
		return printJSON(s.out, v)
	}
	_, err := fmt.Fprintf(s.out, "stile %s (%s, wasmtime %s)\n", v.Stile, v.Go, v.Wasmtime)
	return err
}

// versionOf is the version of the module that go install was given or that the commit has, or else that of the source, with the commit if the
// build knows it.
func versionOf(build *debug.BuildInfo) string {
	if build.Main.Version != "" && build.Main.Version != "(devel)" {
		return build.Main.Version
	}
	commit, dirty := "", ""
	for _, s := range build.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = ".dirty"
		}
	}
	if commit == "" {
		return "v" + unreleased + "-dev"
	}
	return "v" + unreleased + "-dev+" + commit + dirty
}
